// RowSplit: the different ids of a call by server, and all places of each id in the call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncopate::server {

/// Pure; its memory is used again by the next call.
class RowSplit final {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// `ids` must outlive the other calls. Throws Misuse for 2^31 ids and more.
  void split(std::span<const std::uint64_t> ids, std::size_t servers);
  /// The first place of each id that the server keeps, in the order of the call.
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t server) const { return firsts_[server]; }
  [[nodiscard]] std::size_t servers() const noexcept { return firsts_.size(); }
  /// The next place with the same id, in the order of the call; kNone after the last.
  [[nodiscard]] std::uint32_t next(std::uint32_t place) const { return next_[place]; }
  [[nodiscard]] std::uint64_t id(std::uint32_t place) const { return ids_[place]; }

 private:
  std::span<const std::uint64_t> ids_;
  std::vector<std::vector<std::uint32_t>> firsts_;  ///< by server
  std::vector<std::uint32_t> next_, last_;          ///< by place; `last_` of a first place: the last one so far
  std::vector<std::uint32_t> slots_;                ///< a hash table of first places
};

}  // namespace syncopate::server
