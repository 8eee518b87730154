// ClusterText: a cluster file as rank 0 found it, on its way to every rank.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "syncopate/cluster.hpp"

namespace syncopate::collective::group {

struct ClusterText {
  bool readable = false;
  std::string file;
  std::string text;  ///< the file's, or why it cannot be read
};

/// No message is longer.
inline constexpr std::size_t kMostClusterBytes = 2 * base::kMostFileBytes + 64;

[[nodiscard]] std::string encode(const ClusterText& found);
/// Throws Corrupt.
[[nodiscard]] ClusterText decode_cluster_text(std::string_view message);
/// Throws SystemFailure or Misuse that name the file and what to do.
[[nodiscard]] Cluster cluster_of(const ClusterText& found);

}  // namespace syncopate::collective::group
