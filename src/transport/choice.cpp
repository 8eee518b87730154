// The names of the choices of transport and of TLS.
#include "base/named.hpp"
#include "syncopate/group.hpp"

namespace syncopate {

namespace {
constexpr std::string_view kTransports[] = {"auto", "tcp", "shm"};
constexpr std::string_view kTls[] = {"auto", "on", "off"};
}  // namespace

std::string_view name_of(TransportChoice choice) noexcept { return kTransports[static_cast<int>(choice)]; }
TransportChoice transport_named(std::string_view name) {
  return base::value_named<TransportChoice>("transport", name, kTransports);
}

std::string_view name_of(TlsChoice choice) noexcept { return kTls[static_cast<int>(choice)]; }
TlsChoice tls_named(std::string_view name) { return base::value_named<TlsChoice>("tls", name, kTls); }

}  // namespace syncopate
