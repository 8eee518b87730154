// Epochs of pictures from a cache that holds all of them: decoded by the cache, and encoded, in turn.
#include "decoded.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/pipeline.hpp"

namespace {

using namespace syncopate;

constexpr std::size_t kBatch = 8;
constexpr std::uint64_t kSeed = 1;

/// The pictures of one rank, whose part of the cache has room for everything.
class Contender final {
 public:
  Contender(Group& group, const input::Dataset& set, int side, bool is_decoded) : set_(set) {
    auto cache =
        cache::Cache::form(group, *set.training, kSeed,
                           {.memory_bytes = 1ull << 40, .decoded_bytes = is_decoded ? 1ull << 40 : 0, .log = {}});
    cache_ = cache.get();
    pipeline_ = std::make_unique<input::Pipeline>(
        set, set.training, std::move(cache),
        input::PipelineOptions{.threads = 1, .augment = true, .seed = kSeed, .least_side = side});
    pipeline_->start({}, [side, ranks = static_cast<std::size_t>(group.size())](const input::Progress&) {
      return input::StepPlan{kBatch * ranks, side};
    });
  }

  /// Takes the next epoch; returns the pictures of this rank.
  std::size_t take_epoch(std::size_t batch) {
    std::size_t pictures = 0;
    for (std::size_t at = 0; at < set_.training->records(); at += batch) pictures += pipeline_->next().count();
    return pictures;
  }
  [[nodiscard]] std::uint64_t decoded(std::size_t epoch) const { return cache_->counters().at(epoch).decoded; }

 private:
  const input::Dataset& set_;
  const cache::Cache* cache_ = nullptr;  ///< owned by the pipeline
  std::unique_ptr<input::Pipeline> pipeline_;
};

std::string spread(std::vector<double> values) {
  std::ranges::sort(values);
  return fmt::format("{:.0f} ({:.0f}..{:.0f})", values[values.size() / 2], values.front(), values.back());
}

/// One rank's epochs; rank 0 prints.
void take_rounds(Group& group, const input::Dataset& set, int side, int rounds) {
  const base::SteadyClock clock;
  std::map<bool, Contender> contenders;
  std::map<bool, std::vector<double>> rates;
  for (const bool is_decoded : {false, true}) contenders.try_emplace(is_decoded, group, set, side, is_decoded);
  for (int round = 0; round <= rounds; ++round)
    for (auto& [is_decoded, contender] : contenders) {
      barrier(group);
      const base::Time begin = clock.now();
      (void)contender.take_epoch(kBatch * static_cast<std::size_t>(group.size()));
      barrier(group);
      const double rate = static_cast<double>(set.training->records()) / base::seconds(clock.now() - begin);
      if (round == 0 || group.rank() > 0) continue;
      rates[is_decoded].push_back(rate);
      fmt::print(R"({{"benchmark":"cache_tiers","ranks":{},"side":{},"records":{},"tier":"{}","round":{},)"
                 R"("pictures_per_second":{:.1f},"decoded":{}}})"
                 "\n",
                 group.size(), side, set.training->records(), is_decoded ? "decoded" : "encoded", round, rate,
                 contender.decoded(static_cast<std::size_t>(round)));
    }
  if (group.rank() == 0)
    fmt::print("| {} | {} | {} | {} |\n", group.size(), side, spread(rates[false]), spread(rates[true]));
}

}  // namespace

void compare_tiers(const std::string& folder, int side, int rounds) {
  const input::Dataset set = input::open_dataset(folder);
  for (const int ranks : {1, 2}) {
    auto groups = Group::threads(ranks);
    std::vector<std::jthread> threads;
    for (auto& group : groups) threads.emplace_back([&] { take_rounds(*group, set, side, rounds); });
  }
}
