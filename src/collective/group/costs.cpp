// Costs: what "auto" believes of the network; rank 0's cluster file reaches every rank, so that all decide alike.
#include "base/json.hpp"
#include "base/wire.hpp"
#include "collective/group/impl.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

namespace {

/// A cluster file as rank 0 found it: its text, or why there is none.
struct Found {
  bool readable = false;
  std::string file, text;
};

Found find(const std::string& file) try {
  return {true, file, base::text_of_file(file)};
} catch (const SystemFailure& failure) {
  return {false, file, failure.what()};
}

std::string encode(const Found& found) {
  base::WireWriter out;
  out.number(static_cast<std::uint8_t>(found.readable));
  out.text(found.file, base::kMostFileBytes);
  out.text(found.text, base::kMostFileBytes);
  return out.take();
}

Found decode(std::string_view message) {
  base::WireReader in(message);
  Found found{.readable = in.number<std::uint8_t>() != 0};
  found.file = in.text(base::kMostFileBytes);
  found.text = in.text(base::kMostFileBytes);
  in.end();
  return found;
}

Cluster cluster_of(const Found& found) {
  constexpr const char* kRemedy =
      "`syncopate fit -o FILE` writes one; GroupOptions::cluster or SYNCOPATE_CLUSTER names it";
  if (!found.readable) throw SystemFailure(fmt::format("the cluster file of rank 0: {}; {}", found.text, kRemedy));
  try {
    return parse_cluster(found.text, found.file);
  } catch (const Misuse& misuse) {
    throw Misuse(fmt::format("the cluster file of rank 0 is wrong: {}; {}", misuse.what(), kRemedy));
  }
}

}  // namespace

void Group::Impl::learn_costs() {
  if (!endpoint_.has_cluster) return;
  std::string message = endpoint_.rank == 0 ? encode(find(options_.cluster)) : std::string();
  const auto spread = [&](Buffer data, const char* name) {
    run({.collective = Collective::broadcast, .data = data, .options = {.name = name}});
  };
  auto length = static_cast<std::int64_t>(message.size());
  spread(Buffer(&length, 1, DType::i64), "cluster file: length");
  if (length < 0 || static_cast<std::size_t>(length) > 2 * base::kMostFileBytes + 64)
    throw Corrupt(fmt::format("rank 0 announces a cluster file of {} bytes", length), {endpoint_.rank, 0, "", ""});
  message.resize(static_cast<std::size_t>(length));
  spread(Buffer(message.data(), message.size(), DType::u8), "cluster file");
  believe(cluster_of(decode(message)));
}

void Group::Impl::believe(const Cluster& cluster) {
  cost_ = cost_of(cluster, endpoint_.kind);
  cost_in_group_memory_ = cost_of(cluster, collective::group::kind_in_memory(endpoint_), Memory::group);
  if (endpoint_.rank != 0) return;
  if (!cluster.transport.empty() && cluster.transport != endpoint_.kind)
    options_.log.write(LogLevel::warning, fmt::format("{} was measured over {}, and this group uses {}: algorithm auto "
                                                      "goes by usual costs within hosts, and by no timings",
                                                      options_.cluster, cluster.transport, endpoint_.kind));
  else
    options_.log.write(LogLevel::info, fmt::format("algorithm auto goes by {}: timings of {} ranks, laws for others",
                                                   options_.cluster, cluster.ranks));
  const std::string doubt = doubt_of_links(cluster, endpoint_.size);
  if (!doubt.empty()) options_.log.write(LogLevel::warning, fmt::format("{}: {}", options_.cluster, doubt));
}

}  // namespace syncopate
