// PeerInfo: what each rank tells all others at the rendezvous.
#include "transport/connect/peer_info.hpp"

#include "base/require.hpp"
#include "base/wire.hpp"
#include "syncopate/version.hpp"
#include "transport/socket/address.hpp"

namespace syncopate::transport::connect {

namespace {
constexpr std::size_t kMost = 256;
}

std::string encode(const PeerInfo& info) {
  base::WireWriter out;
  out.text(info.version, kMost);
  out.text(info.address, kMost);
  out.text(info.host, kMost);
  out.text(info.memory_socket, kMost);
  out.number(static_cast<std::uint8_t>(info.lends));
  out.text(info.owner, kMost);
  out.number(info.group);
  out.number(info.streams);
  out.number(static_cast<std::uint8_t>(info.checksum));
  out.text(info.transport, kMost);
  out.number(info.silence_ms);
  out.number(static_cast<std::uint8_t>(info.has_cluster));
  return out.take();
}

PeerInfo decode_peer_info(std::string_view text, int rank) {
  base::WireReader in(text);
  PeerInfo info;
  info.version = in.text(kMost);
  base::require(info.version == version(), "rank {} runs Syncopate {}, this rank {}; use one version everywhere", rank,
                info.version, version());
  info.address = in.text(kMost);
  info.host = in.text(kMost);
  info.memory_socket = in.text(kMost);
  info.lends = in.number<std::uint8_t>() != 0;
  info.owner = in.text(kMost);
  info.group = in.number<std::uint64_t>();
  info.streams = in.number<std::uint32_t>();
  info.checksum = in.number<std::uint8_t>() != 0;
  info.transport = in.text(kMost);
  info.silence_ms = in.number<std::int64_t>();
  info.has_cluster = in.number<std::uint8_t>() != 0;
  in.end();
  return info;
}

void require_reachable(const PeerInfo& mine, const PeerInfo& other, int rank) {
  base::require(mine.host == other.host || !socket::Address::parse(other.address).loopback(),
                "rank {} runs on another host, but listens on {}, where only its own host reaches it; set "
                "SYNCOPATE_INTERFACE on every rank to the interface or address that the other hosts reach (a file:// "
                "rendezvous cannot tell it), and SYNCOPATE_SECRET_FILE",
                rank, other.address);
}

}  // namespace syncopate::transport::connect
