// Cables: the commands for ip, bridge and tc that connect a lab's hosts and shape their ports. Text only.
//
//   sync0 [eth0]──────[p0]┐            Both ends of a cable have a token bucket: eth0 shapes what a host sends,
//   sync1 [eth0]──────[p1]┤ br0        p<i> what it receives. Addresses are known in advance everywhere, so that
//   sync2 [eth0]──────[p2]┘            nothing is flooded and no first packet waits for ARP.
#include "lab/cable.hpp"

#include <fmt/format.h>

#include "lab/holder.hpp"
#include "launch/process/descriptor.hpp"

namespace syncopate::tools::lab {
namespace {

/// Locally administered; "SY" and the host's number make it readable in a capture.
std::string hardware_address(int host) { return fmt::format("02:53:59:00:00:{:02x}", host + 1); }

/// Congestion control as clusters have it, whatever the machine's default; as an attribute of the route it needs no
/// permission of the machine's and changes no setting of it.
std::string congestion_control() {
  const std::string available = launch::process::read_file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  return available.find("cubic") != std::string::npos ? "cubic" : "reno";
}

}  // namespace

std::string host_address(int host) { return fmt::format("10.78.0.{}", host + 1); }

std::vector<std::string> bridge_ports(int hosts) {
  std::vector<std::string> ports;
  for (int i = 0; i < hosts; ++i) ports.push_back(fmt::format("p{}", i));
  return ports;
}

std::string bridge_links(const std::vector<pid_t>& keepers) {
  std::string batch = "link set lo up\nlink add br0 type bridge\nlink set br0 up\n";
  for (std::size_t i = 0; i < keepers.size(); ++i) {
    batch += fmt::format("link add p{} type veth peer name eth0 address {} netns {}\n", i,
                         hardware_address(static_cast<int>(i)), keepers[i]);
    batch += fmt::format("link set p{} master br0 up\n", i);
  }
  return batch;
}

std::string bridge_addresses(int hosts) {
  std::string batch;
  for (int i = 0; i < hosts; ++i)
    batch += fmt::format("fdb replace {} dev p{} master static\n", hardware_address(i), i);
  return batch;
}

std::string host_links(int host, int hosts) {
  const std::string own = host_address(host);
  std::string batch = fmt::format("link set lo up\naddr add {}/24 dev eth0\nlink set eth0 up\n", own);
  batch += fmt::format("route replace 10.78.0.0/24 dev eth0 src {} congctl {}\n", own, congestion_control());
  for (int i = 0; i < hosts; ++i)
    if (i != host)
      batch += fmt::format("neigh replace {} lladdr {} dev eth0 nud permanent\n", host_address(i), hardware_address(i));
  return batch;
}

std::string packet_sizes(const std::vector<std::string>& ports, const Shape& shape) {
  std::string batch;
  for (const std::string& port : ports) batch += fmt::format("link set {} gso_max_size {}\n", port, shape.gso_bytes);
  return batch;
}

std::string buckets(const std::vector<std::string>& ports, const Shape& shape) {
  std::string batch;
  for (const std::string& port : ports) {
    batch += fmt::format("qdisc replace dev {} root ", port);
    batch += shape.rate_bits == 0
                 ? "noqueue\n"
                 : fmt::format("tbf rate {}bit burst {} latency 20ms\n", shape.rate_bits, shape.burst_bytes);
  }
  return batch;
}

std::string hosts_file(int hosts) {
  std::string text = "127.0.0.1 localhost\n";
  for (int i = 0; i < hosts; ++i) text += fmt::format("{} {}{}\n", host_address(i), kHostName, i);
  return text;
}

}  // namespace syncopate::tools::lab
