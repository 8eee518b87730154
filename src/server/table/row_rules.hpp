// RowRules: how the rows of a table are made, updated, placed on servers and packed into messages.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "optim/rule.hpp"
#include "server/message.hpp"
#include "syncopate/server_rows.hpp"

namespace syncopate::server {

inline constexpr std::size_t kMostRowWidth = 65536;
/// Bodies of messages with several rows: small enough that the two ends and the wire work at the same time.
inline constexpr std::size_t kRowMessageBytes = std::size_t{1} << 17;
/// All messages about rows leave in the order of the calls.
inline constexpr std::uint64_t kRowPriority = 1;

/// The server that keeps a row. It depends on other bits of the mixed id than a row's place in RowIndex.
[[nodiscard]] constexpr std::size_t server_of_row(std::uint64_t id, std::size_t servers) noexcept {
  return static_cast<std::size_t>(((base::mixed(id) >> 32) * servers) >> 32);
}

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
  [[nodiscard]] std::size_t rows_per_message() const noexcept {
    return kRowMessageBytes > pushed_bytes() ? kRowMessageBytes / pushed_bytes() : 1;
  }
  [[nodiscard]] std::size_t states() const noexcept { return rule.state.size(); }
};

/// The rules of all tables of rows of a job.
[[nodiscard]] std::vector<RowRules> row_rules_of(const std::vector<RowOptions>& tables, const Catalogue& catalogue);

}  // namespace syncopate::server
