// Addresses: IPv4 and IPv6 endpoints as text and as values, and the choice among this host's addresses.
#include "transport/socket/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <vector>

#include "base/require.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

namespace {

struct HostPort {
  std::string host;
  std::string port;
};

/// Splits "host:port" or "[v6]:port"; a bare IPv6 address is refused, since its last group could be a port.
HostPort split(std::string_view text) {
  const auto colon = text.rfind(':');
  base::require(colon != std::string_view::npos, "'{}' is not an address; allowed: host:port or [ipv6]:port", text);
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  base::require(bracketed || host.find(':') == std::string_view::npos,
                "'{}': write an IPv6 address in brackets, like [::1]:29500", text);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  base::require(!host.empty() && error == std::errc{} && end == port.data() + port.size() && number <= 65535,
                "'{}' is not an address; allowed: host:port or [ipv6]:port with a port from 0 to 65535", text);
  return {std::string(host), std::string(port)};
}

using Found = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The first address of a host, or null with the reason.
std::pair<Found, int> poll_callback(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &list);
  return {Found(list, &freeaddrinfo), code};
}

/// Private blocks: 127/8, 10/8, 172.16/12, 192.168/16, 169.254/16.
bool is_public_v4(in_addr_t network_order) noexcept {
  const std::uint32_t host = ntohl(network_order);
  const std::uint32_t first = host >> 24, two = host >> 16;
  return first != 127 && first != 10 && (host >> 20) != 0xac1 && two != 0xc0a8 && two != 0xa9fe;
}

bool link_local(const Address& address) {
  return address.family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.raw())->sin6_addr);
}

}  // namespace

Address::Address(const sockaddr* raw, socklen_t size) : size_(size) {
  std::memcpy(&storage_, raw, std::min<std::size_t>(size, sizeof storage_));
}

Address Address::parse(std::string_view text) {
  const auto [found, code] = poll_callback(split(text), AI_NUMERICHOST);
  base::require(found != nullptr, "'{}' is not a numeric address; allowed: 127.0.0.1:29500, [::1]:29500", text);
  return {found->ai_addr, found->ai_addrlen};
}

Address Address::resolve(std::string_view text) {
  const auto [found, code] = poll_callback(split(text), 0);
  if (!found) throw SystemFailure(fmt::format("cannot find the host of '{}': {}", text, gai_strerror(code)));
  return {found->ai_addr, found->ai_addrlen};
}

Address Address::named(std::string_view name) {
  constexpr std::size_t kMost = 100;
  base::require(!name.empty() && name.size() <= kMost, "a socket's name has {} characters; allowed: 1 to {}",
                name.size(), kMost);
  sockaddr_un raw{};
  raw.sun_family = AF_UNIX;
  std::memcpy(raw.sun_path + 1, name.data(), name.size());  // a leading zero: no file, removed with its socket
  return {reinterpret_cast<const sockaddr*>(&raw),
          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

std::string Address::text() const {
  constexpr socklen_t kNameAt = offsetof(sockaddr_un, sun_path) + 1;
  if (family() == AF_UNIX)
    return size_ <= kNameAt ? "(unnamed)"
                            : "@" + std::string(reinterpret_cast<const char*>(&storage_) + kNameAt, size_ - kNameAt);
  char host[NI_MAXHOST] = "";
  if (getnameinfo(raw(), size_, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "(no address)";
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host, port()) : fmt::format("{}:{}", host, port());
}

std::uint16_t Address::port() const noexcept {
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

Address Address::with_port(std::uint16_t port) const noexcept {
  Address changed = *this;
  if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&changed.storage_)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(&changed.storage_)->sin_port = htons(port);
  return changed;
}

bool Address::loopback() const noexcept {
  if (family() == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24) == 127;
  if (family() != AF_INET6) return false;
  const in6_addr& host = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&host) || (IN6_IS_ADDR_V4MAPPED(&host) && host.s6_addr[12] == 127);
}

bool Address::is_public() const noexcept {
  if (family() == AF_INET) return is_public_v4(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr);
  if (family() != AF_INET6) return false;
  const in6_addr& host = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&host)) {
    in_addr_t mapped;
    std::memcpy(&mapped, &host.s6_addr[12], sizeof mapped);
    return is_public_v4(mapped);
  }
  const bool unique_local = (host.s6_addr[0] & 0xfe) == 0xfc;
  return !IN6_IS_ADDR_LOOPBACK(&host) && !IN6_IS_ADDR_LINKLOCAL(&host) && !unique_local;
}

std::vector<std::pair<std::string, Address>> interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(list, &freeifaddrs);
  std::vector<std::pair<std::string, Address>> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const Address address(entry->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (!link_local(address)) found.emplace_back(entry->ifa_name, address);
  }
  return found;
}

Address interface_address(std::string_view interface) {
  base::require(interface != "0.0.0.0" && interface != "::",
                "interface '{}' is not a single address; peers need one address of this rank", interface);
  if (const auto [found, code] = poll_callback({std::string(interface), "0"}, AI_NUMERICHOST); found)
    return {found->ai_addr, found->ai_addrlen};
  Address chosen;
  std::vector<std::string> present;
  for (const auto& [name, address] : interface_addresses()) {
    if (std::ranges::find(present, name) == present.end()) present.push_back(name);
    if (interface == name && (chosen.size() == 0 || chosen.family() == AF_INET6)) chosen = address;
  }
  base::require(chosen.size() != 0,
                "interface '{}' is unknown or has no address; allowed: {}, or an address of this host", interface,
                fmt::join(present, ", "));
  return chosen;
}

Address loopback_address() {
  const auto all = interface_addresses();
  const auto has = [&](int family) {
    return std::ranges::any_of(all,
                               [=](const auto& one) { return one.second.loopback() && one.second.family() == family; });
  };
  return interface_address(!has(AF_INET) && has(AF_INET6) ? "::1" : "127.0.0.1");
}

Address source_toward(const Address& destination) {
  const Descriptor probe(::socket(destination.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address aim = destination.port() == 0 ? destination.with_port(9) : destination;
  // Connecting a datagram socket sends nothing: it only queries the routing table.
  if (!probe || ::connect(probe.number(), aim.raw(), aim.size()) != 0)
    throw SystemFailure(fmt::format("no route to {}: {}", destination.text(), std::strerror(errno)));
  return local_address(probe).with_port(0);
}

void require_guarded(const Address& address, bool has_secret) {
  base::require(
      address.loopback() || address.family() == AF_UNIX || has_secret,
      "{} is not a loopback address, so the job needs a secret: put at least 16 random bytes into a file that "
      "only you can read, the same on every rank, and name it in SYNCOPATE_SECRET_FILE (`syncopate run` does "
      "this by itself)",
      address.text());
}

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
