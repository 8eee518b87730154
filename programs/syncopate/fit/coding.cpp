// Coding: one step after another of each codec, without the network.
#include "fit/coding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/codec_loopback.hpp"

namespace syncopate::tools::fit {
namespace {

constexpr std::size_t kElements = std::size_t{4} << 20;  // beyond the caches, as gradients are
constexpr std::size_t kChecked = 4096;                   // where only the name and its parameters are looked at
constexpr int kSteps = 7;

CodecLoopback loopback_of(const std::string& codec, std::size_t elements) {
  try {
    return CodecLoopback({.codec = codec, .feedback = FeedbackKind::residual, .elements = elements});
  } catch (const Misuse&) {  // not sound for it, or no codec at all: then this throws too
    return CodecLoopback({.codec = codec, .elements = elements});
  }
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

CodingCost coding_of(Group& group, const std::string& codec, const std::vector<float>& drawn) {
  CodecLoopback loopback = loopback_of(codec, kElements);
  std::vector<double> encode_s, decode_s;
  barrier(group);
  for (int step = 0; step <= kSteps; ++step) {
    // In another rotation for each step: residuals add up as those of independent gradients.
    std::vector<float> gradient(kElements);
    std::ranges::rotate_copy(drawn, drawn.begin() + step * std::ptrdiff_t{kElements / (kSteps + 1)}, gradient.begin());
    const LoopbackStep took = loopback.step(gradient);
    if (step == 0) continue;  // memory is touched for the first time
    encode_s.push_back(took.encode_s);
    decode_s.push_back(took.decode_s);
  }
  std::array<double, 2> medians{median_of(std::move(encode_s)), median_of(std::move(decode_s))};
  allreduce(group, std::span<double>(medians), {.op = ReduceOp::max, .name = "coding times"});
  constexpr double kBytes = kElements * sizeof(float);
  return {codec, medians[0] / kBytes, medians[1] / kBytes};
}

}  // namespace

void require_codecs(const std::vector<std::string>& codecs) {
  for (const std::string& codec : codecs) static_cast<void>(loopback_of(codec, kChecked));
}

std::vector<CodingCost> measure_coding(Group& group, const std::vector<std::string>& codecs) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> drawn(codecs.empty() ? 0 : kElements);
  for (float& element : drawn) element = normal(random);
  std::vector<CodingCost> costs;
  for (const std::string& codec : codecs) costs.push_back(coding_of(group, codec, drawn));
  return costs;
}

}  // namespace syncopate::tools::fit
