// PeerInfo: what each rank tells all others at the rendezvous.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate::transport::connect {

struct PeerInfo {
  std::string version;             ///< the library's
  std::string address;             ///< where the rank listens
  std::string host;                ///< host_identity()
  std::string memory_socket;       ///< abstract socket for ranks that share its memory; empty: it cannot share
  bool lends = false;              ///< vectors in its memory are within the reach of ranks that share it
  std::string owner;               ///< user_identity()
  std::uint64_t group = 0;         ///< random; rank 0's names the group
  std::uint32_t streams = 1;       ///< rank 0's holds
  bool checksum = false;           ///< rank 0's holds
  std::string transport;           ///< auto, tcp or shm; rank 0's holds
  std::int64_t silence_ms = 2000;  ///< rank 0's holds
  bool has_cluster = false;        ///< rank 0's holds: whether it will give everyone a cluster file
  std::string tls = "auto";        ///< auto, on or off; what follows from it must be the same on all ranks
};

[[nodiscard]] std::string encode(const PeerInfo& info);
/// Throws Misuse naming both versions if `text` is from another version, Corrupt for anything else that does not fit.
[[nodiscard]] PeerInfo decode_peer_info(std::string_view text, int rank);

/// Whether a connection is encrypted by the setting `tls`, where the addresses at hand are public or not.
[[nodiscard]] bool encrypts(std::string_view tls, bool is_public) noexcept;
/// Whether the group's connections are encrypted: with `auto` if any rank listens at a public address. Throws Misuse
/// where the ranks' settings do not come to the same.
[[nodiscard]] bool agreed_tls(const std::vector<PeerInfo>& all);

/// Throws Misuse where `other` runs on another host than `mine` and listens on its loopback: each would then wait for a
/// rank that it cannot reach.
void require_reachable(const PeerInfo& mine, const PeerInfo& other, int rank);

}  // namespace syncopate::transport::connect
