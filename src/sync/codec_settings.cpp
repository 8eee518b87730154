// The codec's settings: which feedback it gets, and what is refused.
#include "sync/codec_settings.hpp"

#include <map>

#include "base/require.hpp"
#include "compress/feedback_choice.hpp"

namespace syncopate::sync {

namespace {

using compress::Feedback;
Feedback feedback_of(const FeedbackOptions& options, const compress::Codec& codec) {
  Feedback feedback{.kind = compress::feedback_named(options.kind, codec)};
  if (feedback.kind == Feedback::Kind::momentum) {
    base::require(options.momentum > 0 && options.momentum < 1, "momentum is {}; allowed: above 0, below 1",
                  options.momentum);
    feedback.momentum = static_cast<float>(options.momentum);
    feedback.nesterov = options.nesterov;
  }
  base::require(options.clip_norm >= 0, "local clipping to {}; allowed: 0 (off) and more", options.clip_norm);
  base::require(options.clip_norm == 0 || feedback.kind != Feedback::Kind::none,
                "local clipping to {} without feedback; allowed: with feedback residual or momentum",
                options.clip_norm);
  feedback.clip_norm = options.clip_norm;
  return feedback;
}

}  // namespace

compress::Settings codec_settings(const SynchronizerOptions& options) {
  compress::Settings settings = compress::settings_of(options.codec);
  const FeedbackOptions& feedback = options.feedback;
  settings.feedback = feedback_of(feedback, *settings.codec);
  // What arrives are velocities: bounding them would take from what every rank has already given away.
  base::require(options.clip_norm == 0 || settings.feedback.kind != Feedback::Kind::momentum,
                "clip_norm is {} with feedback momentum, whose averages are velocities; allowed: 0, and local clipping "
                "(FeedbackOptions::clip_norm) instead",
                options.clip_norm);
  settings.dense_below = options.dense_below;
  base::require(feedback.warmup_density >= 0 && feedback.warmup_density <= 1 &&
                    (feedback.warmup_density > 0) == (feedback.warmup_steps > 0),
                "warm-up from density {} in {} steps; allowed: a density above 0, at most 1, and steps; or neither",
                feedback.warmup_density, feedback.warmup_steps);
  base::require(feedback.warmup_steps == 0 || settings.codec->has_density,
                "warm-up with codec {}, which has no density; allowed: without warm-up", settings.codec->name);
  settings.warmup = {feedback.warmup_density, feedback.warmup_steps};
  return settings;
}

std::vector<compress::Settings> codec_settings(const SynchronizerOptions& options,
                                               std::span<const Gradient> gradients) {
  SynchronizerOptions with = options;
  std::map<std::string, compress::Settings> known;
  std::vector<compress::Settings> settings;
  for (const Gradient& gradient : gradients) {
    with.codec = gradient.codec.empty() ? options.codec : gradient.codec;
    const auto [entry, is_first] = known.try_emplace(with.codec);
    if (is_first) entry->second = codec_settings(with);
    settings.push_back(entry->second);
  }
  return settings;
}

std::string text_of(std::span<const compress::Settings> settings) {
  std::vector<std::pair<std::string, std::size_t>> runs;
  for (const compress::Settings& each : settings) {
    const std::string text = each.text();
    if (runs.empty() || runs.back().first != text) runs.emplace_back(text, 0);
    ++runs.back().second;
  }
  if (runs.size() == 1) return runs.front().first;
  std::vector<std::string> parts;
  for (const auto& [text, count] : runs) parts.push_back(fmt::format("{} x{}", text, count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace syncopate::sync
