// RowRules: how the rows of a table are made, updated, placed on servers and packed into messages.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "base/random.hpp"
#include "optim/rule.hpp"
#include "server/message.hpp"
#include "syncopate/server_rows.hpp"

namespace syncopate::server {

inline constexpr std::size_t kMostRowWidth = 65536;
/// Bodies of messages with several rows: small enough that the two ends and the wire work at the same time.
inline constexpr std::size_t kRowMessageBytes = std::size_t{1} << 17;
/// Memory of rows is allocated in slabs of at most this size, or of one row.
inline constexpr std::size_t kSlabBytes = std::size_t{1} << 18;
static_assert(kMostRowWidth * sizeof(float) * (1 + optim::kMostStates) + 2 * sizeof(std::uint64_t) <= kMostBodyBytes,
              "a slab is the body of a message");
/// All messages about rows leave in the order of the calls.
inline constexpr std::uint64_t kRowPriority = 1;

/// The server that keeps a row: equal on every process, unlike a row's slot in RowIndex.
[[nodiscard]] constexpr std::size_t server_of_row(std::uint64_t id, std::size_t servers) noexcept {
  return static_cast<std::size_t>(((base::mixed(id) >> 32) * servers) >> 32);
}

/// Rows with their state in one piece of memory, as servers keep them and as images and messages carry them: all ids,
/// the number of each row's steps, then for each row its values and those of each state.
struct RowLayout {
  static constexpr std::size_t kNumber = sizeof(std::uint64_t);
  std::size_t rows = 0, row_bytes = 0;
  [[nodiscard]] constexpr std::size_t id(std::size_t i) const noexcept { return i * kNumber; }
  [[nodiscard]] constexpr std::size_t steps(std::size_t i) const noexcept { return (rows + i) * kNumber; }
  [[nodiscard]] constexpr std::size_t values(std::size_t i) const noexcept {
    return 2 * rows * kNumber + i * row_bytes;
  }
  [[nodiscard]] constexpr std::size_t bytes() const noexcept { return values(rows); }
};

struct RowRules {
  std::string name;
  std::size_t width = 0;
  const optim::Rule& rule;
  optim::Hyperparameters with{};
  std::uint64_t seed = 0, table = 0;
  float scale = 0;

  /// `table`: its index among the job's tables of rows. Throws Misuse for options that are not allowed.
  RowRules(const RowOptions& options, std::size_t table, const Catalogue& catalogue);
  /// The values of a row before its first update; `into` has `width` floats.
  void initialise(std::uint64_t id, float* into) const;
  [[nodiscard]] std::size_t row_bytes() const noexcept { return width * sizeof(float); }
  /// Body of a push: all ids, then all gradients.
  [[nodiscard]] std::size_t pushed_bytes() const noexcept { return sizeof(std::uint64_t) + row_bytes(); }
  [[nodiscard]] static std::size_t rows_per_message(std::size_t each_bytes) noexcept {
    return std::max<std::size_t>(1, kRowMessageBytes / each_bytes);
  }
  [[nodiscard]] std::size_t states() const noexcept { return rule.state.size(); }
  [[nodiscard]] std::size_t kept_floats() const noexcept { return width * (1 + states()); }
  [[nodiscard]] RowLayout layout_of(std::size_t rows) const noexcept { return {rows, kept_floats() * sizeof(float)}; }
  /// A slab is the piece in which a server allocates the memory of rows. A power of two.
  [[nodiscard]] std::size_t rows_per_slab() const noexcept {
    return std::bit_floor(std::max<std::size_t>(1, kSlabBytes / layout_of(1).bytes()));
  }
};

/// The rules of all tables of rows of a job.
[[nodiscard]] std::vector<RowRules> row_rules_of(const std::vector<RowOptions>& tables, const Catalogue& catalogue);

}  // namespace syncopate::server
