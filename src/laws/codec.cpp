// The laws of a codec, for drawn gradients on several ranks whose rounds are answered in memory.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/random.hpp"
#include "base/require.hpp"
#include "laws/cases.hpp"
#include "laws/coders.hpp"

namespace syncopate {

namespace {

using laws::Coders;
using laws::Settings;
using laws::Shape;
using laws::Values;

constexpr std::uint64_t kSteps = 3;

struct CodedCase {
  std::uint64_t seed = 0;
  std::size_t ranks = 1;
  std::vector<Shape> shapes{};
};

CodedCase coded_case(std::uint64_t seed, const CodecCheck& with) {
  const base::CounterRandom random{seed};
  CodedCase one{.seed = seed, .ranks = 1 + random.below(static_cast<std::uint32_t>(with.most_ranks), 0)};
  const std::size_t tensors = 1 + random.below(3, 1);
  for (std::size_t t = 0; t < tensors; ++t) {
    const std::size_t columns = 1 + random.below(8, 2 * t + 2);
    const std::size_t rows = std::max<std::size_t>(with.most_elements / columns, 1);
    one.shapes.push_back(
        {.rows = 1 + random.below(static_cast<std::uint32_t>(rows), 2 * t + 3), .columns = columns, .key = seed + t});
  }
  return one;
}

/// Whether every element of the case's gradients is coded.
bool is_coded(const Settings& settings, const CodedCase& one) {
  return std::ranges::all_of(one.shapes, [&](const Shape& shape) {
    return compress::is_coded(
        settings, {.values = Buffer(nullptr, shape.count(), DType::f32), .rows = shape.rows, .columns = shape.columns});
  });
}

bool equal_bits(const Values& one, const Values& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(float)) == 0;
}

/// By rank and tensor: v, the gradients of a step with the residual of the steps before.
using Compensations = std::vector<std::vector<Values>>;

Compensations compensations_of(Coders& coders, const CodedCase& one, bool keeps) {
  Compensations all(coders.size());
  for (std::size_t rank = 0; rank < coders.size(); ++rank)
    for (std::size_t t = 0; t < one.shapes.size(); ++t) {
      Values v = coders.at(rank, t).values;
      if (keeps && !coders.at(rank, t).kept.empty())
        for (std::size_t i = 0; i < v.size(); ++i) v[i] += coders.residual(rank, t, i);
      all[rank].push_back(std::move(v));
    }
  return all;
}

/// Allowed error of an average in f32, relative to the largest element.
constexpr double kRounding = 1e-5;

/// The ranks sent v - r' of gradient `t`; the average of that is the codec's.
std::optional<BrokenLaw> lost_in(Coders& coders, std::size_t t, const Compensations& before) {
  double size = 0;
  for (const auto& tensors : before)
    for (const float v : tensors[t]) size = std::max(size, std::abs(static_cast<double>(v)));
  for (std::size_t i = 0; i < before[0][t].size(); ++i) {
    const float average = coders.at(0, t).values[i];
    double sent = 0;
    for (std::size_t rank = 0; rank < coders.size(); ++rank)
      sent += static_cast<double>(before[rank][t][i]) - static_cast<double>(coders.residual(rank, t, i));
    sent /= static_cast<double>(coders.size());
    const bool holds = coders.size() == 1 ? coders.residual(0, t, i) == before[0][t][i] - average
                                          : std::abs(sent - static_cast<double>(average)) <= kRounding * size;
    if (!holds)
      return BrokenLaw{.law = "nothing lost",
                       .text = fmt::format("element {} of gradient {} on {} ranks: gradient plus residual minus the "
                                           "next residual is {} on average, and the codec's average is {}",
                                           i, t, coders.size(), sent, average)};
  }
  return std::nullopt;
}

std::optional<BrokenLaw> broken_by_step(Coders& coders, const Settings& settings, const CodedCase& one) {
  const bool keeps = settings.feedback.kind == compress::Feedback::Kind::residual;
  const Compensations before = compensations_of(coders, one, keeps);
  coders.step();
  for (std::size_t rank = 1; rank < coders.size(); ++rank)
    for (std::size_t t = 0; t < one.shapes.size(); ++t)
      if (!equal_bits(coders.at(rank, t).values, coders.at(0, t).values))
        return BrokenLaw{.law = "equal bits",
                         .text = fmt::format("gradient {} of rank {} differs from rank 0's", t, rank)};
  for (std::size_t t = 0; t < one.shapes.size() && keeps && !settings.codec->combines.scatter; ++t)
    if (auto broken = lost_in(coders, t, before)) return broken;
  return std::nullopt;
}

std::optional<BrokenLaw> broken_in_steps(const Settings& settings, const CodedCase& one) {
  Coders first(settings, one.shapes, static_cast<int>(one.ranks)),
      again(settings, one.shapes, static_cast<int>(one.ranks));
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const auto gradient = [&](std::size_t rank, std::size_t t, std::size_t i) {
      const base::CounterRandom random{one.seed, step, rank, t};
      return static_cast<float>(std::pow(random.uniform(2 * i), 3) * (random.uniform(2 * i + 1) < 0.5 ? -1 : 1));
    };
    first.fill(gradient);
    again.fill(gradient);
    if (auto broken = broken_by_step(first, settings, one)) return broken;
    again.step();
    for (std::size_t t = 0; t < one.shapes.size(); ++t)
      if (!equal_bits(first.at(0, t).values, again.at(0, t).values) || first.at(0, t).kept != again.at(0, t).kept)
        return BrokenLaw{.law = "equal steps",
                         .text = fmt::format("gradient {} of step {} differs when the case runs again", t, step)};
  }
  return std::nullopt;
}

std::optional<BrokenLaw> broken_by(const Settings& settings, const CodedCase& one) try {
  return broken_in_steps(settings, one);
} catch (const laws::UnlawfulRound& round) {
  return BrokenLaw{.law = "equal rounds", .text = round.what()};
}

/// The codec as workers of a parameter server use it; without a coder if that is not another one.
compress::Codec alone_of(const compress::Codec& codec) {
  compress::Codec alone = codec;
  alone.coder = codec.coder_alone;
  alone.combines = {.gather = true};
  return alone;
}

}  // namespace

std::optional<BrokenLaw> check_codec(const compress::Codec& codec, const CodecCheck& with) {
  base::require(with.most_ranks >= 1 && with.most_elements >= 1,
                "{} ranks and {} elements; allowed: at least 1 of each", with.most_ranks, with.most_elements);
  const Catalogue standard;
  const auto entries = standard.codecs();
  const Catalogue catalogue = std::ranges::find(entries, &codec) == entries.end() ? standard.with(codec) : standard;
  const std::string name = fmt::format("{}{}{}", codec.name, with.parameter.empty() ? "" : ":", with.parameter);
  const Settings settings = laws::with_residual(name, catalogue);
  const compress::Codec codec_alone = alone_of(codec);
  Settings alone = settings;
  alone.codec = &codec_alone;
  return laws::first_broken("codec " + name, with.seed, with.cases,
                            [&](std::uint64_t seed) -> std::optional<BrokenLaw> {
                              const CodedCase one = coded_case(seed, with);
                              if (!is_coded(settings, one)) return std::nullopt;
                              auto broken = broken_by(settings, one);
                              if (broken || alone.codec->coder == nullptr) return broken;
                              broken = broken_by(alone, one);
                              if (broken) broken->text = "packets alone: " + broken->text;
                              return broken;
                            });
}

}  // namespace syncopate
