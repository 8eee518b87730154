// Rendezvous address of ranks that one program started on this host: an abstract socket of this user.
#include <unistd.h>

#include <charconv>

#include "base/require.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {

constexpr std::string_view kDescriptor = "fd:";

/// The process that holds the other end of the unix socket `number`; 0 if there is none.
int process_behind(std::string_view number) {
  int descriptor = -1;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), descriptor);
  if (error != std::errc{} || end != number.data() + number.size()) return 0;
  return socket::peer_process(descriptor);
}

}  // namespace

socket::Address local_meeting(std::string_view name) {
  const std::string prefix = fmt::format("syncopate-job-{}-", ::geteuid());
  if (!name.starts_with(kDescriptor)) return socket::Address::named(prefix + std::string(name));
  const int process = process_behind(name.substr(kDescriptor.size()));
  base::require(
      process > 0,
      "rendezvous 'local://{}': that descriptor is not a unix socket of this process (did a wrapper script close "
      "it?); set SYNCOPATE_RENDEZVOUS=tcp://127.0.0.1:29500 on every rank instead",
      name);
  return socket::Address::named(prefix + fmt::format("started-by-{}", process));
}

}  // namespace syncopate::transport::connect::rendezvous
