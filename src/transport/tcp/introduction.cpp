// Introduction: what each rank tells all others at the rendezvous.
#include "transport/tcp/introduction.hpp"

#include "base/require.hpp"
#include "syncopate/version.hpp"
#include "transport/tcp/address.hpp"
#include "transport/wire.hpp"

namespace syncopate::transport::tcp {

namespace {
constexpr std::size_t kMost = 256;
}

std::string encode(const Introduction& introduction) {
  WireWriter out;
  out.text(introduction.version, kMost);
  out.text(introduction.address, kMost);
  out.text(introduction.host, kMost);
  out.text(introduction.door, kMost);
  out.text(introduction.owner, kMost);
  out.number(introduction.group);
  out.number(introduction.streams);
  out.number(static_cast<std::uint8_t>(introduction.checksum));
  out.text(introduction.transport, kMost);
  out.number(introduction.silence_ms);
  out.number(static_cast<std::uint8_t>(introduction.has_cluster));
  return out.take();
}

Introduction decode_introduction(std::string_view text, int rank) {
  WireReader in(text);
  Introduction introduction;
  introduction.version = in.text(kMost);
  base::require(introduction.version == version(),
                "rank {} runs Syncopate {}, this rank {}; use one version everywhere", rank, introduction.version,
                version());
  introduction.address = in.text(kMost);
  introduction.host = in.text(kMost);
  introduction.door = in.text(kMost);
  introduction.owner = in.text(kMost);
  introduction.group = in.number<std::uint64_t>();
  introduction.streams = in.number<std::uint32_t>();
  introduction.checksum = in.number<std::uint8_t>() != 0;
  introduction.transport = in.text(kMost);
  introduction.silence_ms = in.number<std::int64_t>();
  introduction.has_cluster = in.number<std::uint8_t>() != 0;
  in.end();
  return introduction;
}

void require_reachable(const Introduction& mine, const Introduction& other, int rank) {
  base::require(mine.host == other.host || !Address::parse(other.address).loopback(),
                "rank {} runs on another host, but listens on {}, where only its own host reaches it; set "
                "SYNCOPATE_INTERFACE on every rank to the interface or address that the other hosts reach (a file:// "
                "rendezvous cannot tell it), and SYNCOPATE_SECRET_FILE",
                rank, other.address);
}

}  // namespace syncopate::transport::tcp
