// Layers: ranks grouped by host, as seen by one rank; and plans of parts of the ranks set into a plan of all.
#pragma once

#include <string_view>
#include <vector>

#include "collective/compose.hpp"

namespace syncopate::collective {

/// What a part of the ranks does: the algorithm `name` with so many blocks, if it has any.
struct Part {
  std::string_view name;
  Collective collective = Collective::allreduce;
  std::uint32_t size = 1;
  std::uint32_t root = 0;
  std::uint32_t blocks = 1;
};

/// Every host has a leader: its first rank, or the root of the collective on the root's host.
class Layers final {
 public:
  explicit Layers(const Shape& shape);

  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(members_.size()); }
  [[nodiscard]] const std::vector<std::uint32_t>& local() const { return members_[own_host_]; }
  [[nodiscard]] std::uint32_t own_host() const { return own_host_; }
  [[nodiscard]] std::uint32_t place() const { return place_; }  ///< index of this rank in local()
  [[nodiscard]] std::uint32_t local_leader() const { return leader_of(own_host_); }
  [[nodiscard]] bool is_leader() const { return place_ == local_leader(); }
  [[nodiscard]] std::vector<std::uint32_t> leaders() const;
  /// Rank number `place` of every host; each host must have so many.
  [[nodiscard]] std::vector<std::uint32_t> peers_at(std::uint32_t place) const;
  [[nodiscard]] std::uint32_t smallest() const;
  [[nodiscard]] std::uint32_t largest() const;
  [[nodiscard]] std::vector<std::uint32_t> sizes() const;  ///< distinct ones
  [[nodiscard]] std::uint32_t root_host() const { return root_host_; }
  /// A number of chunks that those of all parts divide, on hosts of any of the sizes; throws Misuse where it is absurd.
  [[nodiscard]] std::uint32_t common_chunks(const Part& between, std::vector<Part> within) const;

 private:
  [[nodiscard]] std::uint32_t leader_of(std::uint32_t host) const { return host == root_host_ ? root_place_ : 0; }

  std::vector<std::vector<std::uint32_t>> members_;  ///< by host
  std::uint32_t own_host_ = 0, place_ = 0;
  std::uint32_t root_host_ = 0, root_place_ = 0;
};

/// The plan of the part's rank `at`.
[[nodiscard]] Plan plan_of(const Part& part, std::uint32_t at);
/// Adds that plan. The part's vector is embedding.scale chunks of the whole; its own chunks are so many fewer.
void add_part(Plan& plan, const Part& part, std::uint32_t at, Embedding embedding);

}  // namespace syncopate::collective
