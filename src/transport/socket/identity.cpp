// Identity: texts by which ranks find out which of them share a host, and which run as the same user.
#include "transport/socket/identity.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <fstream>
#include <set>

#include "transport/socket/address.hpp"

namespace syncopate::transport::socket {

namespace {

std::string namespace_of(const char* kind) {
  char space[128] = "";
  if (::readlink(fmt::format("/proc/thread-self/ns/{}", kind).c_str(), space, sizeof space - 1) < 0) space[0] = '\0';
  return space;
}

/// One value for all addresses at which other hosts may reach this one.
std::uint64_t hash_of_addresses() {
  std::set<std::string> sorted;
  for (const auto& [name, address] : interface_addresses())
    if (!address.loopback()) sorted.insert(address.text());
  std::string all;
  for (const std::string& address : sorted) all += address + '\n';
  return XXH3_64bits(all.data(), all.size());
}

}  // namespace

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return fmt::format("{}/{}/{:016x}", boot, namespace_of("net"), hash_of_addresses());
}

std::string user_identity() { return fmt::format("{}/{}", namespace_of("user"), ::geteuid()); }

}  // namespace syncopate::transport::socket
