// CodecState: two copies that are swapped after a step without errors.
#include "sync/codec_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/require.hpp"
#include "compress/coding.hpp"
#include "sync/exchange.hpp"

namespace syncopate::sync {

CodecState::CodecState(std::span<const std::size_t> bytes, int rank, int ranks)
    : slots_(bytes.size()), rank_(rank), ranks_(ranks) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (auto& copy : slots_[i].copies) copy.assign(bytes[i], std::byte{0});
}

void CodecState::commit() noexcept {
  now_ = 1 - now_;
  ++steps_;
  last_ = LastStep::committed;
  is_finite_ = true;
}

void CodecState::reject() noexcept {
  last_ = LastStep::rejected;
  is_finite_ = true;
}

void CodecState::undo() {
  base::require(last_ != LastStep::none, "there is no step to discard; allowed: once after each step that ended");
  if (last_ == LastStep::committed) {
    now_ = 1 - now_;
    --steps_;
  }
  last_ = LastStep::none;
}

SavedCodecState CodecState::save(const std::string& codec, std::span<const Gradient> gradients) const {
  SavedCodecState saved{.codec = codec, .steps = steps_, .rank = rank_, .ranks = ranks_};
  for (std::size_t i = 0; i < slots_.size(); ++i)
    saved.gradients.emplace_back(gradients[i].name, slots_[i].copies[now_]);
  return saved;
}

void CodecState::restore(const SavedCodecState& saved, const std::string& codec, std::span<const Gradient> gradients) {
  base::require(saved.codec == codec, "the saved state is of codec {}; the synchronizer's is {}", saved.codec, codec);
  base::require(saved.gradients.size() == slots_.size(), "the saved state has {} gradients; the synchronizer has {}",
                saved.gradients.size(), slots_.size());
  const bool is_empty = std::ranges::all_of(saved.gradients, [](const auto& each) { return each.second.empty(); });
  base::require(
      is_empty || (saved.rank == rank_ && saved.ranks == ranks_),
      "the saved state is that of rank {} of {}, and this is rank {} of {}; allowed: the state that this rank "
      "has saved, or none on every rank",
      saved.rank, saved.ranks, rank_, ranks_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const auto& [name, bytes] = saved.gradients[i];
    base::require(name == gradients[i].name && bytes.size() == slots_[i].copies[now_].size(),
                  "the saved state of gradient {} is of '{}' with {} bytes; here it is '{}' with {}", i, name,
                  bytes.size(), gradients[i].name, slots_[i].copies[now_].size());
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].copies[now_] = saved.gradients[i].second;
  steps_ = saved.steps;
  last_ = LastStep::none;
}

namespace {

/// Weights are needed where the exchange ends in them or the codec looks at them, and may be given anywhere.
void require_weights(const std::vector<Gradient>& gradients, const SynchronizerOptions& options,
                     const Exchange& exchange, std::span<const compress::Settings> settings) {
  const bool ends_in_weights = exchange.updater() != Updater::caller;
  const auto looks = std::ranges::find_if(settings, [](const auto& each) { return each.codec->wants_weights; });
  if (!ends_in_weights && looks == settings.end()) return;
  const std::string who =
      ends_in_weights ? fmt::format("exchange {}", exchange.name) : fmt::format("codec {}", looks->codec->name);
  base::require(options.weights.size() == gradients.size(),
                "{} needs the weights of {} gradients (option weights), and got {}", who, gradients.size(),
                options.weights.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Buffer& weights = options.weights[i];
    base::require(weights.data != nullptr && weights.count == gradients[i].elements,
                  "gradient '{}' has {} elements, its weights have {}{}", gradients[i].name, gradients[i].elements,
                  weights.count, weights.data == nullptr ? " at a null address" : "");
    base::require(exchange.updater() != Updater::shards || weights.dtype == gradients[i].dtype,
                  "gradient '{}' is of type {}, its weights are of type {}; exchange {} takes equal types",
                  gradients[i].name, name_of(gradients[i].dtype), name_of(weights.dtype), exchange.name);
    base::require(!settings[i].codec->wants_weights || weights.dtype == DType::f32 || weights.dtype == DType::f16 ||
                      weights.dtype == DType::bf16,
                  "codec {} does not take the weights of gradient '{}', of type {}; allowed: f32, f16, bf16",
                  settings[i].codec->name, gradients[i].name, name_of(weights.dtype));
  }
}

void require_shape(const Gradient& gradient) {
  base::require(gradient.elements > 0, "gradient '{}' has no elements", gradient.name);
  base::require(gradient.rows == 0 || gradient.elements % gradient.rows == 0,
                "gradient '{}' has {} elements in {} rows; allowed: rows that divide the elements, or 0", gradient.name,
                gradient.elements, gradient.rows);
}

}  // namespace

compress::Settings codec_settings(const SynchronizerOptions& options) {
  compress::Settings settings = compress::settings_of(options.coding, options.catalogue);
  // The averages are velocities. Clipping them would remove a part that ranks no longer hold in their residuals.
  base::require(options.clip_norm == 0 || settings.feedback.kind != compress::Feedback::Kind::momentum,
                "clip_norm is {} with feedback momentum, whose averages are velocities; allowed: 0, and local clipping "
                "(clip_norm of the feedback) instead",
                options.clip_norm);
  return settings;
}

std::vector<compress::Settings> codec_settings(const SynchronizerOptions& options,
                                               std::span<const Gradient> gradients) {
  SynchronizerOptions with = options;
  std::map<std::string, compress::Settings> known;
  std::vector<compress::Settings> settings;
  for (const Gradient& gradient : gradients) {
    with.coding.codec = gradient.codec.empty() ? options.coding.codec : gradient.codec;
    const auto [entry, is_first] = known.try_emplace(with.coding.codec);
    if (is_first) entry->second = codec_settings(with);
    settings.push_back(entry->second);
  }
  return settings;
}

std::vector<compress::Settings> checked_settings(const std::vector<Gradient>& gradients,
                                                 const SynchronizerOptions& options) {
  base::require(!gradients.empty(), "a synchronizer needs at least one gradient");
  base::require(options.clip_norm >= 0, "clip_norm is {}; allowed: 0 (off) and more", options.clip_norm);
  base::require(options.check_every >= 0, "check_every is {}; allowed: 0 (never) and more", options.check_every);
  const Exchange& exchange = exchange_named(options.exchange);
  std::vector<compress::Settings> settings = codec_settings(options, gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const Gradient& gradient = gradients[i];
    require_shape(gradient);
    require_fit(exchange, *settings[i].codec, options.algorithm, options.catalogue);
    compress::require_taken(settings[i], gradient.name, gradient.dtype);
    base::require(
        !exchange.narrowing || !is_integer(gradient.dtype),
        "exchange {} averages in two stages, and gradient '{}' has type {}; allowed there: f32, f64, f16, bf16",
        exchange.name, gradient.name, name_of(gradient.dtype));
    base::require(options.clip_norm == 0 || !is_integer(gradient.dtype),
                  "clip_norm is {}, and gradient '{}' has type {}; allowed with clipping: f32, f64, f16, bf16",
                  options.clip_norm, gradient.name, name_of(gradient.dtype));
  }
  require_weights(gradients, options, exchange, settings);
  return settings;
}

namespace {

template <class TextOf>
std::string joined(std::span<const compress::Settings> settings, TextOf text_of_one) {
  std::vector<std::pair<std::string, std::size_t>> runs;
  for (const compress::Settings& each : settings) {
    const std::string text = text_of_one(each);
    if (runs.empty() || runs.back().first != text) runs.emplace_back(text, 0);
    ++runs.back().second;
  }
  if (runs.size() == 1) return runs.front().first;
  std::vector<std::string> parts;
  for (const auto& [text, count] : runs) parts.push_back(fmt::format("{} x{}", text, count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string text_of(std::span<const compress::Settings> settings) {
  return joined(settings, [](const compress::Settings& each) { return compress::text_of(each); });
}

std::string owner_of(std::span<const compress::Settings> settings) {
  return joined(settings, [](const compress::Settings& each) { return compress::owner_of(each); });
}

}  // namespace syncopate::sync
