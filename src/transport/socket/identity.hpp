// Identity: texts by which ranks find out who shares their host, and who runs as the same user.
#pragma once

#include <string>

namespace syncopate::transport::socket {

/// Equal on two ranks exactly if they share a host: boot id, network namespace and addresses. Machines that were cloned
/// while they ran have equal boot ids, but not equal addresses if they are to talk to each other.
[[nodiscard]] std::string host_identity();
/// Equal on two ranks of a host exactly if they run as the same user: user namespace and number.
[[nodiscard]] std::string user_identity();

}  // namespace syncopate::transport::socket
