// PeerInfo: what each rank sends to all others at the rendezvous.
#include "transport/connect/peer_info.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "base/wire.hpp"
#include "syncopate/version.hpp"
#include "transport/socket/address.hpp"

namespace syncopate::transport::connect {

namespace {

constexpr std::size_t kMost = 256;

/// Reads an enumerator of one byte.
template <class Choice>
Choice choice_of(base::WireReader& in, Choice last) {
  const auto value = in.number<std::uint8_t>();
  if (value > static_cast<std::uint8_t>(last)) in.refuse("one of its choices is unknown");
  return static_cast<Choice>(value);
}

}  // namespace

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
  out.number(static_cast<std::uint8_t>(info.transport));
  out.number(info.silence_ms);
  out.number(static_cast<std::uint8_t>(info.has_cluster));
  out.number(static_cast<std::uint8_t>(info.tls));
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
  info.transport = choice_of(in, TransportChoice::shm);
  info.silence_ms = in.number<std::int64_t>();
  info.has_cluster = in.number<std::uint8_t>() != 0;
  info.tls = choice_of(in, TlsChoice::off);
  in.end();
  return info;
}

bool encrypts(TlsChoice tls, bool is_public) noexcept {
  return tls == TlsChoice::on || (tls == TlsChoice::automatic && is_public);
}

bool agreed_tls(const std::vector<PeerInfo>& all) {
  const bool is_public =
      std::ranges::any_of(all, [](const PeerInfo& rank) { return socket::Address::parse(rank.address).is_public(); });
  const auto wish = [&](const PeerInfo& rank) { return encrypts(rank.tls, is_public); };
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    base::require(wish(all[rank]) == wish(all[0]),
                  "rank {} has SYNCOPATE_TLS={}, rank 0 has SYNCOPATE_TLS={}; set it to on or off, the same on every "
                  "rank",
                  rank, name_of(all[rank].tls), name_of(all[0].tls));
  return wish(all[0]);
}

void require_reachable(const PeerInfo& mine, const PeerInfo& other, int rank) {
  base::require(mine.host == other.host || !socket::Address::parse(other.address).loopback(),
                "rank {} runs on another host, but listens on {}, where only its own host reaches it; set "
                "SYNCOPATE_INTERFACE on every rank to the interface or address that the other hosts reach (a file:// "
                "rendezvous cannot derive it), and SYNCOPATE_SECRET_FILE",
                rank, other.address);
}

}  // namespace syncopate::transport::connect
