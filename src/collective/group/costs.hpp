// Costs: the message by which rank 0 sends its cluster file to every rank.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "syncopate/cluster.hpp"

namespace syncopate::collective::group {

struct ClusterText {
  bool readable = false;
  std::string file;
  std::string text;  ///< the file's text, or the reason why it cannot be read
};

/// Largest message.
inline constexpr std::size_t kMostClusterBytes = 2 * base::kMostFileBytes + 64;

[[nodiscard]] std::string encode(const ClusterText& found);
/// Throws Corrupt.
[[nodiscard]] ClusterText decode_cluster_text(std::string_view message);
/// Throws SystemFailure or Misuse that name the file and what to do.
[[nodiscard]] Cluster cluster_of(const ClusterText& found);

}  // namespace syncopate::collective::group
