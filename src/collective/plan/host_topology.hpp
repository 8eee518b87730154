// HostTopology: ranks grouped by host, as seen by one rank.
#pragma once

#include <vector>

#include "collective/plan/shape.hpp"

namespace syncopate::collective::plan {

/// Every host has a leader: its first rank, but on the root's host the root of the collective.
class HostTopology final {
 public:
  explicit HostTopology(const Shape& shape);

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] const std::vector<std::vector<std::uint32_t>>& members() const { return members_; }  ///< by host
  [[nodiscard]] const std::vector<std::uint32_t>& local() const { return members_[own_host_]; }
  [[nodiscard]] std::uint32_t own_host() const { return own_host_; }
  [[nodiscard]] std::uint32_t place() const { return place_; }  ///< index of this rank in local()
  [[nodiscard]] std::uint32_t local_leader() const { return leader_of(own_host_); }
  [[nodiscard]] bool is_leader() const { return place_ == local_leader(); }
  [[nodiscard]] std::vector<std::uint32_t> leaders() const;
  /// The ranks with index `place` on their host, one per host; every host must have more than `place` ranks.
  [[nodiscard]] std::vector<std::uint32_t> peers_at(std::uint32_t place) const;
  [[nodiscard]] std::uint32_t smallest() const;
  [[nodiscard]] std::uint32_t largest() const;
  [[nodiscard]] std::vector<std::uint32_t> sizes() const;  ///< numbers of ranks per host, each number once
  [[nodiscard]] std::uint32_t root_host() const { return root_host_; }

 private:
  [[nodiscard]] std::uint32_t leader_of(std::uint32_t host) const { return host == root_host_ ? root_place_ : 0; }

  std::vector<std::vector<std::uint32_t>> members_;  ///< ranks by host
  std::uint32_t own_host_ = 0, place_ = 0;
  std::uint32_t root_host_ = 0, root_place_ = 0;
};

}  // namespace syncopate::collective::plan
