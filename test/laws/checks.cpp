// The checks of a program's own components: each broken law is named, with the case that shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "compress/codec.hpp"
#include "schedule/policy.hpp"
#include "server/placement.hpp"
#include "server/storage.hpp"
#include "syncopate/codec_feedback.hpp"
#include "syncopate/error.hpp"
#include "syncopate/testing.hpp"

namespace syncopate::laws {
namespace {

using server::BlockView;
using server::Clock;
using server::Consistency;
using server::Demand;
using server::Placement;
using server::Rule;
using server::ServerView;
using server::Shard;
using server::Storage;
using server::Storages;

// Consistency models.

/// The law, the place and the case, found again by its seed alone.
void expect_broken(const Consistency& model, const ConsistencyCheck& with, std::string_view law) {
  const auto broken = check_consistency(model, with);
  ASSERT_TRUE(broken) << model.name << " passes";
  EXPECT_EQ(broken->law, law) << broken->text;
  for (const std::string& part : {std::string(model.name), std::string(law), "seed " + std::to_string(broken->seed),
                                  "worker " + std::to_string(broken->worker), "step " + std::to_string(broken->step)})
    EXPECT_NE(broken->text.find(part), std::string::npos) << part << " is not in: " << broken->text;
  ConsistencyCheck again = with;
  again.seed = broken->seed;
  again.histories = 1;
  EXPECT_EQ(check_consistency(model, again).value().text, broken->text);
}

TEST(ConsistencyCheck, NamesTheStepThatMissesMoreUpdatesThanPromised) {
  static constexpr Consistency kFar{.name = "far", .rule = [](std::span<const double>) {
                                      return Rule{.last_step = [](const ServerView& view) { return view.least + 6; }};
                                    }};
  EXPECT_FALSE(check_consistency(kFar, {.bound = 6}));
  expect_broken(kFar, {.bound = 5}, "bounded staleness");
}

TEST(ConsistencyCheck, NamesAWorkerThatWaitsForever) {
  // A quorum of 3 of N that no smaller job reaches, without the bound that lets the slowest worker go on.
  static constexpr Consistency kStuck{.name = "stuck", .rule = [](std::span<const double>) {
                                        return Rule{.staleness = -1, .last_step = [](const ServerView& view) {
                                                      std::vector<Clock> clocks(view.clocks.begin(), view.clocks.end());
                                                      std::ranges::sort(clocks, std::greater());
                                                      return clocks.size() < 3 ? 0 : clocks[2];
                                                    }};
                                      }};
  expect_broken(kStuck, {}, "no deadlock");
}

TEST(ConsistencyCheck, NamesAStepThatIsDecidedDifferentlyTheSecondTime) {
  static constexpr Consistency kMoody{.name = "moody", .rule = [](std::span<const double>) {
                                        return Rule{.last_step = [](const ServerView& view) {
                                          static std::uint64_t calls = 0;
                                          return view.least + static_cast<Clock>(++calls % 7);
                                        }};
                                      }};
  expect_broken(kMoody, {}, "equal decisions");
}

TEST(ConsistencyCheck, ReportsAnExceptionOfTheModel) {
  static constexpr Consistency kThrows{
      .name = "throws", .rule = [](std::span<const double>) {
        return Rule{.last_step = [](const ServerView&) -> Clock { throw Misuse("no last step"); }};
      }};
  const auto broken = check_consistency(kThrows);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->law, "no exception");
  EXPECT_NE(broken->text.find("no last step"), std::string::npos) << broken->text;
}

TEST(ConsistencyCheck, OfAParameterOrLimitThatIsNotAllowedIsMisuse) {
  static constexpr Consistency kPlain{.name = "plain", .rule = [](std::span<const double>) { return Rule{}; }};
  EXPECT_THROW(static_cast<void>(check_consistency(kPlain, {.parameter = "3"})), Misuse);
  EXPECT_THROW(static_cast<void>(check_consistency(kPlain, {.steps = 0})), Misuse);
}

// Storages: each of these breaks one law.

TEST(Storage, OfEveryEntryObeysItsLaws) {
  for (const Storage* storage : server::storages()) {
    const auto broken = check_storage(*storage);
    EXPECT_FALSE(broken) << broken->text;
  }
}

/// A step of `apply`: w = w - c * factor().
template <class Factor>
Storages applied(Factor factor) {
  return {.apply = [factor](const BlockView&, std::span<const float> combined, double, std::span<float>,
                            std::span<float> weights) mutable {
    const float by = factor();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= by * combined[i];
  }};
}

void expect_broken(Storages (*storages)(std::span<const double>), std::string_view law) {
  const Storage mine{.name = "mine", .storages = storages};
  const auto broken = check_storage(mine);
  ASSERT_TRUE(broken) << law;
  EXPECT_EQ(broken->law, law) << broken->text;
  EXPECT_NE(broken->text.find("storage mine"), std::string::npos) << broken->text;
  EXPECT_EQ(check_storage(mine, {.seed = broken->seed, .cases = 1}).value().law, law);
}

TEST(StorageCheck, NamesTheLawThatIsBroken) {
  EXPECT_FALSE(check_storage(
      {.name = "mine", .storages = [](std::span<const double>) { return applied([] { return 0.5F; }); }}));
  expect_broken(
      [](std::span<const double>) {
        static int calls = 0;
        return applied([] { return static_cast<float>(++calls); });
      },
      "equal bits");
  expect_broken(
      [](std::span<const double>) { return applied([calls = 0]() mutable { return static_cast<float>(++calls); }); },
      "nothing remembered");
  expect_broken([](std::span<const double>) -> Storages { return applied([]() -> float { throw Misuse("no step"); }); },
                "no exception");
  const auto halved = [](const Buffer& memory, std::span<float> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float*>(memory.data)[i] / 2;
  };
  static constexpr auto kStore = [](std::span<const float> values, const Buffer& memory) {
    std::ranges::copy(values, static_cast<float*>(memory.data));
  };
  static const auto load = halved;
  expect_broken([](std::span<const double>) { return Storages{.load = load, .store = kStore}; }, "equal memory");
  expect_broken(
      [](std::span<const double>) {
        return Storages{.load =
                            [](const Buffer& memory, std::span<float> values) {
                              std::ranges::copy_n(static_cast<float*>(memory.data), std::ssize(values), values.begin());
                            },
                        .store =
                            [calls = 0](std::span<const float> values, const Buffer& memory) mutable {
                              if (++calls < 20) kStore(values, memory);  // under ssp:1 workers miss different ones
                            }};
      },
      "equal weights");
}

TEST(StorageCheck, OfAStorageThatKeepsItsStateHolds) {
  const Storage heavy{.name = "heavy", .storages = [](std::span<const double>) {
                        return Storages{.apply =
                                            [](const BlockView&, std::span<const float> combined, double,
                                               std::span<float> kept, std::span<float> weights) {
                                              const std::size_t count = weights.size();
                                              for (std::size_t i = 0; i < count; ++i) {
                                                kept[i] = 0.5F * kept[i] + combined[i];
                                                kept[count + i] += 1;
                                                weights[i] -= 0.1F * kept[i] / kept[count + i];
                                              }
                                            },
                                        .kept = 2};
                      }};
  const auto broken = check_storage(heavy);
  EXPECT_FALSE(broken) << broken->text;
}

TEST(StorageCheck, OfALimitThatIsNotAllowedIsMisuse) {
  EXPECT_THROW(static_cast<void>(check_storage(
                   {.name = "mine", .storages = [](std::span<const double>) { return Storages{}; }}, {.steps = 1})),
               Misuse);
}

// Placements: the standard ones obey; each of these breaks one law.

void expect_broken(const Placement& placement, std::string_view law) {
  const auto broken = check_placement(placement);
  ASSERT_TRUE(broken) << placement.name << " passes";
  EXPECT_EQ(broken->law, law) << broken->text;
  EXPECT_NE(broken->text.find(placement.name), std::string::npos) << broken->text;
  EXPECT_TRUE(check_placement(placement, {.seed = broken->seed, .cases = 1}));
}

std::vector<Shard> whole_tables(const Demand& demand) {
  std::vector<Shard> shards;
  for (std::size_t table = 0; table < demand.table_bytes.size(); ++table)
    if (demand.table_bytes[table] > 0) shards.push_back({table, 0, demand.table_bytes[table], 0});
  return shards;
}

double all_bytes(const Demand& demand) {
  double bytes = 0;
  for (const std::size_t table : demand.table_bytes) bytes += static_cast<double>(table);
  return bytes;
}

TEST(Placement, OfEveryEntryKeepsEveryByteOnceAndItsLaw) {
  for (const Placement* placement : server::placements()) {
    const auto broken = check_placement(*placement);
    EXPECT_FALSE(broken) << broken->text;
  }
}

TEST(PlacementCheck, NamesTheLawThatIsBroken) {
  Placement mine{.name = "mine", .place = whole_tables, .most_bytes = all_bytes};
  EXPECT_FALSE(check_placement(mine));
  mine.most_bytes = [](const Demand& demand) { return all_bytes(demand) / static_cast<double>(demand.servers); };
  expect_broken(mine, "maximum load");
  mine.place = [](const Demand& demand) {
    auto shards = whole_tables(demand);
    if (!shards.empty()) shards.back().end -= demand.grain_bytes;
    return shards;
  };
  expect_broken(mine, "every byte once");
  mine.place = [](const Demand& demand) {
    static std::size_t calls = 0;
    auto shards = whole_tables(demand);
    for (Shard& shard : shards) shard.server = calls % demand.servers;
    ++calls;
    return shards;
  };
  expect_broken(mine, "equal shards");
  mine.place = [](const Demand& demand) -> std::vector<Shard> { return {{demand.table_bytes.size(), 0, 1, 0}}; };
  expect_broken(mine, "every byte once");
}

// Policies.

void expect_broken(const schedule::Policy& policy, std::string_view law) {
  const auto broken = check_policy(policy);
  ASSERT_TRUE(broken) << policy.name << " passes";
  EXPECT_EQ(broken->law, law) << broken->text;
  EXPECT_NE(broken->text.find(policy.name), std::string::npos) << broken->text;
  EXPECT_TRUE(check_policy(policy, {.seed = broken->seed, .cases = 1}));
}

using schedule::Partition;
using schedule::PolicyOptions;
using schedule::Timeline;

TEST(Policy, OfEveryEntryPutsEveryLayerInExactlyOneBucket) {
  for (const schedule::Policy* policy : schedule::policies()) {
    const auto broken = check_policy(*policy);
    EXPECT_FALSE(broken) << broken->text;
  }
}

TEST(PolicyCheck, NamesTheLawThatIsBroken) {
  schedule::Policy mine{.name = "mine", .partition = [](const Timeline& timeline, const PolicyOptions&) -> Partition {
                          return {{0, timeline.layers.size() - 1}};
                        }};
  EXPECT_FALSE(check_policy(mine));
  mine.partition = [](const Timeline& timeline, const PolicyOptions&) {
    Partition forward;
    for (std::size_t layer = 0; layer < timeline.layers.size(); ++layer) forward.push_back({layer, layer});
    return forward;
  };
  expect_broken(mine, "every gradient once");
  mine.partition = [](const Timeline& timeline, const PolicyOptions&) -> Partition {
    return {{timeline.layers.size() > 40 ? 1U : 0U, timeline.layers.size() - 1}};
  };
  expect_broken(mine, "every gradient once");
  mine.partition = [](const Timeline& timeline, const PolicyOptions&) -> Partition {
    static std::size_t calls = 0;
    const std::size_t last = timeline.layers.size() - 1;
    if (++calls % 2 == 0 || last == 0) return {{0, last}};
    return {{last, last}, {0, last - 1}};
  };
  expect_broken(mine, "equal buckets");
  mine.partition = [](const Timeline& timeline, const PolicyOptions& options) -> Partition {
    static_cast<void>(schedule::required_cost("mine", timeline, options));
    return {{0, timeline.layers.size() - 1}};
  };
  expect_broken(mine, "no exception");
  mine.needs = schedule::Needs::times;
  EXPECT_FALSE(check_policy(mine));
}

// Codecs: this one sends every second element, or breaks a law.

enum class Defect : std::uint8_t { none, keeps_what_it_sent, adds_its_rank, exceeds_its_wire, counts_calls };

template <Defect kDefect>
class HalfCoder final : public compress::Coder {
 public:
  explicit HalfCoder(const compress::Settings& with) : feedback_(with.feedback) {}
  compress::Round begin(std::span<const compress::Tensor> tensors, const compress::StepInfo& info,
                        std::span<std::byte> wire) override {
    static std::size_t calls = 0;
    if (kDefect == Defect::counts_calls) first_ = ++calls % 2;
    tensors_ = tensors;
    rank_ = info.rank;
    auto *const payload = reinterpret_cast<float*>(wire.data()), *into = payload;
    for (const compress::Tensor& tensor : tensors) {
      const compress::Compensated sum(tensor, feedback_);
      sum.form({0, sum.size()});
      std::vector<std::uint32_t> indices;
      for (std::size_t i = first_; i < sum.size(); i += 2) indices.push_back(static_cast<std::uint32_t>(i));
      for (const std::uint32_t index : indices) *into++ = sum.elements()[index];
      if (kDefect != Defect::keeps_what_it_sent) sum.sent(indices);
    }
    if (kDefect == Defect::exceeds_its_wire) *into++ = 0;
    payload_ = {payload, into};
    return {.combine = compress::Combine::additive, .payload = Buffer(payload_), .ends = true};
  }
  std::optional<compress::Round> next(compress::Answer) override {
    const float* from = payload_.data();
    for (const compress::Tensor& tensor : tensors_) {
      const std::span values(static_cast<float*>(tensor.values.data), tensor.values.count);
      std::ranges::fill(values, 0.0F);
      for (std::size_t i = first_; i < values.size(); i += 2) values[i] = *from++;
      if (kDefect == Defect::adds_its_rank) values[0] += static_cast<float>(rank_);
    }
    return std::nullopt;
  }

 private:
  compress::Feedback feedback_;
  std::span<const compress::Tensor> tensors_;
  std::span<float> payload_;
  std::size_t first_ = 0;
  int rank_ = 0;
};

template <Defect kDefect>
constexpr compress::Codec kHalf = {.name = "half",
                                   .combines = {.additive = true},
                                   .decodes_alone = false,
                                   .feedback = compress::FeedbackUse::sound,
                                   .wire_bytes =
                                       [](const compress::Settings&, std::span<const compress::Tensor> tensors) {
                                         std::size_t elements = 0;
                                         for (const compress::Tensor& tensor : tensors)
                                           elements += (tensor.values.count + 1) / 2;
                                         return elements * sizeof(float);
                                       },
                                   .coder = [](const compress::Settings& with) -> std::unique_ptr<compress::Coder> {
                                     return std::make_unique<HalfCoder<kDefect>>(with);
                                   }};

TEST(Codec, OfEveryEntryObeysItsLaws) {
  for (const compress::Codec* codec : compress::codecs()) {
    const auto broken = check_codec(*codec, {.cases = 20});
    EXPECT_FALSE(broken) << broken->text;
  }
}

template <Defect kDefect>
std::string law_broken_by(CodecCheck with = {}) {
  const auto broken = check_codec(kHalf<kDefect>, with);
  if (!broken) return "none";
  with.seed = broken->seed;
  with.cases = 1;
  EXPECT_TRUE(check_codec(kHalf<kDefect>, with)) << broken->text;
  return broken->law;
}

TEST(CodecCheck, NamesTheLawThatIsBroken) {
  EXPECT_EQ(law_broken_by<Defect::none>(), "none");
  EXPECT_EQ(law_broken_by<Defect::keeps_what_it_sent>(), "nothing lost");
  EXPECT_EQ(law_broken_by<Defect::adds_its_rank>(), "equal bits");
  EXPECT_EQ(law_broken_by<Defect::exceeds_its_wire>(), "equal rounds");
  EXPECT_EQ(law_broken_by<Defect::counts_calls>({.most_ranks = 1}), "equal steps");
}

}  // namespace
}  // namespace syncopate::laws
