// Packets that are decoded alone, as a server does: decoded values, and refusals.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

std::vector<const Codec*> codecs_alone() {
  std::vector<const Codec*> alone;
  for (const Codec* codec : codecs())
    if (codec->decodes_alone || codec->coder_alone != nullptr) alone.push_back(codec);
  return alone;
}

/// A gradient of some thousand elements, encoded by one rank.
class Packets : public testing::TestWithParam<const Codec*> {
 protected:
  Packets() : settings_(test::with_residual(std::string(GetParam()->name))), coder_(packet_coder_of(settings_)) {
    const base::CounterRandom random{1}, others{2};
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      gradient_[i] = static_cast<float>(random.uniform(i) - 0.5) * (i % 100 == 0 ? 20.0F : 1.0F);
      weights_[i] = static_cast<float>(others.uniform(i) - 0.5);
    }
    tensor_ = {.values = Buffer(std::span(gradient_)),
               .weights = Buffer(std::span(weights_)),
               .rows = kRows,
               .columns = gradient_.size() / kRows,
               .key = 5};
    for (auto* state : {&kept_, &next_}) state->resize(state_bytes(settings_, tensor_, true, 1));
    wire_.resize(wire_bytes_of(settings_, {&tensor_, 1}, true));
    tensor_.kept = kept_;
    tensor_.next = next_;
    packet_ = coder_->begin({&tensor_, 1}, {.step = 3, .rank = 2, .ranks = 1}, wire_).payload.bytes();
  }

  static constexpr std::size_t kRows = 50;
  std::vector<float> gradient_ = std::vector<float>(5000), weights_ = std::vector<float>(5000);
  const Settings settings_;
  std::unique_ptr<Coder> coder_;
  std::vector<std::byte> kept_, next_, wire_;
  Tensor tensor_;
  base::ConstBytes packet_;
};

TEST_P(Packets, SayAboutTheGradientAndWhatTheyLeaveOutIsTheResidual) {
  std::vector<float> decoded(gradient_.size());
  packet_coder_of(settings_)->add(packet_, decoded);
  double error = 0, whole = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    error += (decoded[i] - gradient_[i]) * (decoded[i] - gradient_[i]);
    whole += gradient_[i] * gradient_[i];
  }
  EXPECT_LT(error, 2 * whole);  // stochastic rounding to three levels: the variance is about as large as the gradient
  if (settings_.feedback.kind == Feedback::Kind::none) return;
  EXPECT_LT(error, whole);
  const auto* const residual = reinterpret_cast<const float*>(next_.data() + next_.size()) - gradient_.size();
  for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(residual[i], gradient_[i] - decoded[i]) << i;
}

TEST_P(Packets, AreAddedToWhatIsThere) {
  std::vector<float> once(gradient_.size()), twice(gradient_.size());
  coder_->add(packet_, once);
  for (int time = 0; time < 2; ++time) coder_->add(packet_, twice);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]) << i;
}

TEST_P(Packets, ThatAreCutOffOrTooLongAreCorrupt) {
  std::vector<float> into(gradient_.size());
  std::vector<std::byte> longer(packet_.begin(), packet_.end());
  longer.resize(longer.size() + 4);
  EXPECT_THROW(coder_->add(longer, into), Corrupt);
  EXPECT_THROW(coder_->add(packet_.first(packet_.size() - 1), into), Corrupt);
  EXPECT_THROW(coder_->add(packet_.first(1), into), Corrupt);
}

INSTANTIATE_TEST_SUITE_P(Codecs, Packets, testing::ValuesIn(codecs_alone()),
                         [](const auto& tested) { return std::string(tested.param->name); });

/// One rank's payload of a step, of a gradient that is the index plus `first`.
std::vector<std::byte> payload_of(const Settings& settings, float first, std::vector<float>& gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = first + static_cast<float>(i);
  Tensor tensor{.values = Buffer(std::span(gradient)), .rows = gradient.size(), .key = 5};
  std::vector<std::byte> kept(state_bytes(settings, tensor, true, 1)), next(kept.size());
  std::vector<std::byte> wire(wire_bytes_of(settings, {&tensor, 1}, true));
  tensor.kept = kept;
  tensor.next = next;
  const auto bytes = coder_of(settings, true)->begin({&tensor, 1}, {.step = 3, .ranks = 1}, wire).payload.bytes();
  return {bytes.begin(), bytes.end()};
}

/// So a server adds payloads up before it places them.
TEST(SelectedAlike, TheSumOfPayloadsIsThePayloadOfTheSum) {
  for (const Codec* codec : codecs()) {
    if (!codec->selects_alike) continue;
    const Settings settings = test::with_residual(std::string(codec->name) + ":0.1");
    std::vector<float> gradient(1000), placed(1000);
    std::vector<std::byte> sum = payload_of(settings, 1, gradient);
    const std::vector<std::byte> other = payload_of(settings, 2000, gradient);
    ASSERT_EQ(sum.size(), 100 * sizeof(float));
    kernel::reduce({}, sum.data(), other.data(), 100);
    const auto coder = coder_of(settings, true);
    coder->add_selected(sum, {.key = 5, .step = 3}, placed);
    std::size_t count = 0;
    for (std::size_t i = 0; i < placed.size(); ++i) {
      if (placed[i] == 0) continue;
      EXPECT_EQ(placed[i], 2001 + 2 * static_cast<float>(i)) << codec->name;
      ++count;
    }
    EXPECT_EQ(count, 100U) << codec->name;
    EXPECT_THROW(coder->add_selected(base::ConstBytes(sum).first(396), {.key = 5, .step = 3}, placed), Corrupt);
  }
  EXPECT_THROW(coder_of(settings_of("topk"), true)->add_selected({}, {}, {}), Misuse);
}

TEST(Codec, WhosePacketsNeedOthersSaysSo) {
  std::vector<float> into(4);
  for (const Codec* codec : codecs()) {
    if (codec->decodes_alone) continue;
    EXPECT_THROW(coder_of(settings_of(codec->name), true)->add({}, into), Misuse) << codec->name;
  }
}

}  // namespace
}  // namespace syncopate::compress
