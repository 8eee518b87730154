// Identity: texts by which ranks find out which of them share a host, and which run as the same user.
#pragma once

#include <string>

namespace syncopate::transport::socket {

/// Equal on two ranks exactly if they share a host: boot id, network namespace and addresses. Machines that were cloned
/// while they ran have equal boot ids, but different addresses if they can reach each other.
[[nodiscard]] std::string host_identity();
/// Equal on two ranks of a host exactly if they run as the same user: user namespace and number.
[[nodiscard]] std::string user_identity();

}  // namespace syncopate::transport::socket
