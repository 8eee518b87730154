// Catalogue: a program's own codecs and policies are chosen by name, and a name that one rank lacks is a Mismatch.
#include "syncopate/catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "ranks.hpp"
#include "schedule/policy.hpp"
#include "syncopate/codec.hpp"
#include "syncopate/combiner.hpp"
#include "syncopate/error.hpp"
#include "syncopate/predict.hpp"
#include "syncopate/rule.hpp"
#include "syncopate/synchronizer.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

/// Averages the gradients, multiplied by a number.
class ScaledCoder final : public compress::Coder {
 public:
  explicit ScaledCoder(const compress::Settings& settings) : by_(static_cast<float>(settings.numbers.at(0))) {}
  [[nodiscard]] compress::Round begin(std::span<const compress::Tensor> tensors, const compress::StepInfo& /*info*/,
                                      std::span<std::byte> wire) override {
    tensors_ = tensors;
    sums_ = {reinterpret_cast<float*>(wire.data()), compress::elements_of(tensors)};
    auto into = sums_.begin();
    for (const compress::Tensor& tensor : tensors) {
      const auto* const values = static_cast<const float*>(tensor.values.data);
      into = std::transform(values, values + tensor.values.count, into, [this](float value) { return by_ * value; });
    }
    return {.combine = compress::Combine::additive, .payload = Buffer(sums_), .ends = true};
  }
  [[nodiscard]] std::optional<compress::Round> next(compress::Answer /*answer*/) override {
    auto from = sums_.begin();
    for (const compress::Tensor& tensor : tensors_) {
      std::copy_n(from, tensor.values.count, static_cast<float*>(tensor.values.data));
      from += static_cast<std::ptrdiff_t>(tensor.values.count);
    }
    return std::nullopt;
  }

 private:
  float by_;
  std::span<const compress::Tensor> tensors_;
  std::span<float> sums_;
};

constexpr Parameter kFactor[] = {{"factor", 0, 100}};

constexpr compress::Codec kScaled{
    .name = "scaled",
    .combines = {.additive = true},
    .parameter = "2",
    .parameters = kFactor,
    .decodes_alone = false,
    .wire_bytes =
        [](const compress::Settings&, std::span<const compress::Tensor> tensors) {
          return compress::elements_of(tensors) * sizeof(float);
        },
    .coder = [](const compress::Settings& settings) -> std::unique_ptr<compress::Coder> {
      return std::make_unique<ScaledCoder>(settings);
    },
};

constexpr schedule::Policy kHalves{
    .name = "halves", .partition = [](const schedule::Timeline& timeline, const schedule::PolicyOptions&) {
      const std::size_t layers = timeline.layers.size(), half = layers / 2;
      return half == 0 ? schedule::Partition{{0, layers - 1}} : schedule::Partition{{half, layers - 1}, {0, half - 1}};
    }};

constexpr schedule::Policy kForgetsALayer{.name = "forgets",
                                          .partition = [](const schedule::Timeline&, const schedule::PolicyOptions&) {
                                            return schedule::Partition{{1, 2}};
                                          }};

std::vector<Gradient> model() {
  return {{.name = "a", .elements = 3}, {.name = "b", .elements = 2}, {.name = "c", .elements = 1}};
}

float average_of_ranks(Group& group, const SynchronizerOptions& options) {
  Synchronizer synchronizer(group, model(), options);
  for (std::size_t i = 0; i < 3; ++i) {
    const Buffer gradient = synchronizer.gradient(i);
    std::fill_n(static_cast<float*>(gradient.data), gradient.count, static_cast<float>(group.rank()));
    synchronizer.ready(i);
  }
  synchronizer.wait();
  return *static_cast<const float*>(synchronizer.gradient(0).data);
}

TEST(Catalogue, GivesAProgramsOwnCodecByNameWithItsParameter) {
  test::on_groups(3, [](Group& group) {
    const Catalogue mine = Catalogue::standard().with(kScaled);
    EXPECT_EQ(average_of_ranks(group, {.catalogue = mine, .coding = {.codec = "scaled"}}), 2);
    EXPECT_EQ(average_of_ranks(group, {.catalogue = mine, .coding = {.codec = "scaled:8"}}), 8);
    EXPECT_EQ(average_of_ranks(group, {.catalogue = mine, .coding = {.codec = "none"}}), 1);
    EXPECT_THROW(average_of_ranks(group, {.coding = {.codec = "scaled"}}), Misuse) << "catalogues are values";
    EXPECT_THROW(average_of_ranks(group, {.catalogue = mine, .coding = {.codec = "scaled:101"}}), Misuse);
  });
}

TEST(Catalogue, GivesAProgramsOwnPolicyByName) {
  test::on_groups(2, [](Group& group) {
    const Catalogue mine = Catalogue::standard().with(kHalves).with(kForgetsALayer);
    Synchronizer synchronizer(group, model(), {.catalogue = mine, .policy = "halves"});
    ASSERT_EQ(synchronizer.buckets().size(), 2U);
    EXPECT_EQ(synchronizer.buckets()[0].first, 1U);
    EXPECT_THROW(Synchronizer(group, model(), {.catalogue = mine, .policy = "forgets"}), Misuse) << "layer 0";
  });
}

TEST(Catalogue, PredictsAProgramsOwnPolicy) {
  Cluster cluster{.ranks = 4};
  cluster.inter = {.alpha_s = 1e-4, .beta_s_per_byte = 1e-9};
  const Profile profile{.forward_s = 0.1, .layers = {{"a", 4096, 0.1}, {"b", 4096, 0.1}}};
  const auto predictions =
      predict_policies(profile, cluster, {.policies = {"halves"}, .catalogue = Catalogue::standard().with(kHalves)});
  EXPECT_EQ(predictions.at(0).buckets.size(), 2U);
}

/// Only rank 0 has the entry, or all but rank 0: one rank finds the Mismatch, and every error names it, at the latest
/// in the first step.
template <class Entry>
void expect_mismatch(const Entry& entry, SynchronizerOptions options, bool rank_0_has_it, const std::string& name) {
  const auto groups = Group::threads(3, {.timeout = std::chrono::seconds(10)});
  int mismatches = 0;
  for (const std::exception_ptr& outcome : test::outcomes(3, [&](int rank) {
         SynchronizerOptions mine = options;
         if ((rank == 0) == rank_0_has_it) mine.catalogue = Catalogue::standard().with(entry);
         average_of_ranks(*groups[static_cast<std::size_t>(rank)], mine);
       })) {
    test::expect_thrown(outcome, {name});
    mismatches += test::kind_thrown(outcome).starts_with("Mismatch: ") ? 1 : 0;
  }
  EXPECT_GE(mismatches, 1);
}

TEST(Catalogue, ANameThatARankLacksIsAMismatchThatNamesIt) {
  for (const bool rank_0_has_it : {true, false}) {
    expect_mismatch(kScaled, {.coding = {.codec = "scaled"}}, rank_0_has_it, "codec 'scaled'");
    expect_mismatch(kHalves, {.policy = "halves"}, rank_0_has_it, "policy 'halves'");
  }
}

TEST(Catalogue, RefusesAnEntryThatItCannotUse) {
  const Catalogue standard = Catalogue::standard();
  compress::Codec codec = kScaled;
  for (const char* name : {"", "topk", "Scaled", "scaled:2", "a+b", "a b"}) {
    codec.name = name;
    EXPECT_THROW(static_cast<void>(standard.with(codec)), Misuse) << "'" << name << "'";
  }
  EXPECT_THROW(static_cast<void>(standard.with(kScaled).with(kScaled)), Misuse) << "twice";
  codec = kScaled;
  codec.coder = nullptr;
  EXPECT_THROW(static_cast<void>(standard.with(codec)), Misuse);
  for (const char* usual : {"", "1,2", "1000"}) {
    codec = kScaled;
    codec.parameter = usual;
    EXPECT_THROW(static_cast<void>(standard.with(codec)), Misuse) << "default '" << usual << "'";
  }
  const optim::Rule rule{.name = "idle", .takes = {}, .update = nullptr};
  EXPECT_THROW(static_cast<void>(standard.with(rule)), Misuse);
}

}  // namespace
}  // namespace syncopate
