// PeerInfo: what each rank sends to all others at the rendezvous.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/group.hpp"

namespace syncopate::transport::connect {

struct PeerInfo {
  std::string version;        ///< the library's
  std::string address;        ///< where the rank listens
  std::string host;           ///< host_identity()
  std::string memory_socket;  ///< abstract socket for ranks that share its memory; empty: it cannot share
  bool lends = false;         ///< ranks that share its memory can reach vectors in it
  std::string owner;          ///< user_identity()
  std::uint64_t group = 0;    ///< random; rank 0's names the group
  std::uint32_t streams = 1;  ///< rank 0's value holds
  bool checksum = false;      ///< rank 0's value holds
  TransportChoice transport = TransportChoice::automatic;  ///< rank 0's value holds
  std::int64_t silence_ms = 2000;                          ///< rank 0's value holds
  bool has_cluster = false;              ///< rank 0 will send a cluster file to every rank; rank 0's value holds
  TlsChoice tls = TlsChoice::automatic;  ///< the result must be the same on all ranks
};

[[nodiscard]] std::string encode(const PeerInfo& info);
/// Throws Misuse naming both versions if `text` is from another version, Corrupt if it is invalid in another way.
[[nodiscard]] PeerInfo decode_peer_info(std::string_view text, int rank);

/// Whether the setting `tls` encrypts a connection whose addresses are public or not.
[[nodiscard]] bool encrypts(TlsChoice tls, bool is_public) noexcept;
/// Whether the group's connections are encrypted: if the choice is automatic, if any rank listens at a public address.
/// Throws Misuse if the ranks' settings conflict.
[[nodiscard]] bool agreed_tls(const std::vector<PeerInfo>& all);

/// Throws Misuse if `other` runs on another host than `mine` and listens on its loopback: each rank would wait for one
/// that it cannot reach.
void require_reachable(const PeerInfo& mine, const PeerInfo& other, int rank);

}  // namespace syncopate::transport::connect
