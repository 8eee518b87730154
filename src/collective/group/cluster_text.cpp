// ClusterText: the message by which rank 0 sends its cluster file to every rank.
#include "collective/group/cluster_text.hpp"

#include <fmt/format.h>

#include "base/wire.hpp"
#include "syncopate/error.hpp"

namespace syncopate::collective::group {

std::string encode(const ClusterText& found) {
  base::WireWriter out;
  out.number(static_cast<std::uint8_t>(found.readable));
  out.text(found.file, base::kMostFileBytes);
  out.text(found.text, base::kMostFileBytes);
  return out.take();
}

ClusterText decode_cluster_text(std::string_view message) {
  base::WireReader in(message);
  ClusterText found{.readable = in.number<std::uint8_t>() != 0};
  found.file = in.text(base::kMostFileBytes);
  found.text = in.text(base::kMostFileBytes);
  in.end();
  return found;
}

Cluster cluster_of(const ClusterText& found) {
  constexpr const char* kRemedy =
      "`syncopate fit -o FILE` writes one; GroupOptions::cluster or SYNCOPATE_CLUSTER names it";
  if (!found.readable) throw SystemFailure(fmt::format("the cluster file of rank 0: {}; {}", found.text, kRemedy));
  try {
    return parse_cluster(found.text, found.file);
  } catch (const Misuse& misuse) {
    throw Misuse(fmt::format("the cluster file of rank 0 is invalid: {}; {}", misuse.what(), kRemedy));
  }
}

}  // namespace syncopate::collective::group
