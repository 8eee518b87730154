// Addresses: IPv4 and IPv6 endpoints and abstract names as text and values, and the choice among this host's addresses.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate::transport::socket {

/// A host address with a port, or an abstract unix socket name (valid within this network namespace). Text form:
/// "127.0.0.1:29500", "[::1]:29500", "@name".
class Address final {
 public:
  Address() = default;
  Address(const sockaddr* raw, socklen_t size);
  /// Numeric host and port; throws Misuse.
  [[nodiscard]] static Address parse(std::string_view text);
  /// As `parse`, but the host may be a name. Throws Misuse for bad syntax, SystemFailure for an unknown name.
  [[nodiscard]] static Address resolve(std::string_view text);
  /// An abstract unix name of at most 100 characters; throws Misuse.
  [[nodiscard]] static Address named(std::string_view name);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] Address with_port(std::uint16_t port) const noexcept;
  [[nodiscard]] bool loopback() const noexcept;
  /// A host address that is not loopback, link-local or private (RFC 1918, RFC 4193).
  [[nodiscard]] bool is_public() const noexcept;
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }
  [[nodiscard]] const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const noexcept { return size_; }
  friend bool operator==(const Address& a, const Address& b) { return a.text() == b.text(); }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// The addresses (port 0) of this host's interfaces, by name, without those that need a scope (link-local IPv6).
[[nodiscard]] std::vector<std::pair<std::string, Address>> interface_addresses();
/// This host's address (port 0) for an interface name ("eth0") or a numeric address. Throws Misuse naming what exists.
[[nodiscard]] Address interface_address(std::string_view interface);
/// 127.0.0.1, or ::1 on a host whose loopback has no IPv4 address.
[[nodiscard]] Address loopback_address();
/// The local address (port 0) from which packets to `destination` leave.
[[nodiscard]] Address source_toward(const Address& destination);
/// Throws Misuse with the remedy unless only this host reaches `address`, or there is a secret.
void require_guarded(const Address& address, bool has_secret);

/// Equal on two ranks exactly if they share a host: boot id, network namespace and addresses. Machines that were cloned
/// while they ran have equal boot ids, but different addresses if they can reach each other.
[[nodiscard]] std::string host_identity();
/// Equal on two ranks of a host exactly if they run as the same user: user namespace and number.
[[nodiscard]] std::string user_identity();

}  // namespace syncopate::transport::socket
