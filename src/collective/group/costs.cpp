// Costs: the network costs by which "auto" chooses, from rank 0's cluster file.
// Rank 0 sends its cluster file to every rank, so that all choose alike.
#include "collective/group/costs.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/wire.hpp"
#include "collective/group/impl.hpp"
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

namespace syncopate {

using collective::group::ClusterText;

namespace {

ClusterText find(const std::string& file) try {
  return {true, file, base::text_of_file(file)};
} catch (const SystemFailure& failure) {
  return {false, file, failure.what()};
}

}  // namespace

void Group::Impl::learn_costs() {
  if (!endpoint_.has_cluster) return;
  std::string message = endpoint_.rank == 0 ? encode(find(options_.cluster)) : std::string();
  const auto spread = [&](Buffer data, const char* name) {
    run(collective::group::request_in_place(Collective::broadcast, data, {.name = name}));
  };
  auto length = static_cast<std::int64_t>(message.size());
  spread(Buffer(&length, 1, DType::i64), "cluster file: length");
  if (length < 0 || static_cast<std::size_t>(length) > collective::group::kMostClusterBytes)
    throw Corrupt(fmt::format("rank 0 announces a cluster file of {} bytes", length), {endpoint_.rank, 0, "", ""});
  message.resize(static_cast<std::size_t>(length));
  spread(Buffer(message.data(), message.size(), DType::u8), "cluster file");
  use_costs_of(cluster_of(collective::group::decode_cluster_text(message)));
}

void Group::Impl::use_costs_of(const Cluster& cluster) {
  cost_ = cost_of(cluster, endpoint_.kind);
  cost_in_group_memory_ = cost_of(cluster, collective::group::kind_in_memory(endpoint_), Memory::group);
  if (endpoint_.rank != 0) return;
  if (!cluster.transport.empty() && cluster.transport != endpoint_.kind)
    options_.log.write(LogLevel::warning, fmt::format("{} was measured over {}, but this group uses {}: algorithm auto "
                                                      "uses the usual costs within hosts, and no timings",
                                                      options_.cluster, cluster.transport, endpoint_.kind));
  else
    options_.log.write(LogLevel::info, fmt::format("algorithm auto uses {}: timings of {} ranks, laws for others",
                                                   options_.cluster, cluster.ranks));
  const std::string warning = warning_about_links(cluster, endpoint_.size);
  if (!warning.empty()) options_.log.write(LogLevel::warning, fmt::format("{}: {}", options_.cluster, warning));
}

}  // namespace syncopate
