// Cables: the commands for ip, bridge and tc that connect a lab's hosts and shape their ports. Text only.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lab/shape.hpp"

namespace syncopate::tools::lab {

[[nodiscard]] std::string host_address(int host);  ///< "10.78.0.<host+1>"

/// Each is the input of `ip -batch -`, `bridge -batch -` or `tc -batch -`, to be run in the namespace of its name.
[[nodiscard]] std::string bridge_links(const std::vector<pid_t>& keepers);  ///< ip, on the bridge
[[nodiscard]] std::string bridge_addresses(int hosts);                      ///< bridge, on the bridge
[[nodiscard]] std::string host_links(int host, int hosts);                  ///< ip, on the host
[[nodiscard]] std::string packet_sizes(const std::vector<std::string>& ports, const Shape& shape);  ///< ip
[[nodiscard]] std::string buckets(const std::vector<std::string>& ports, const Shape& shape);       ///< tc

/// The bridge's ports in order of hosts: p0, p1, …
[[nodiscard]] std::vector<std::string> bridge_ports(int hosts);
/// The content of /etc/hosts on every host.
[[nodiscard]] std::string hosts_file(int hosts);

}  // namespace syncopate::tools::lab
