// Averages: sums over ranks and micro-batches, clipping, and how far rounding may lead away.
#include "random/averages.hpp"

#include <algorithm>
#include <cmath>

namespace syncopate::test {

namespace {

double spacing_of_codec(const std::string& codec) {
  if (codec == "fp16") return spacing_of(DType::f16);
  return codec == "bf16" || codec == "lossless" ? spacing_of(DType::bf16) : 0;
}

}  // namespace

Averages::Averages(const Training& training, int rank) : training_(training), rank_(rank) {
  for (const Gradient& gradient : training.model)
    layers_.push_back({std::vector<double>(gradient.elements, 1), std::vector<std::int64_t>(gradient.elements), 0});
}

void Averages::average(const Backward& backward, std::size_t i, Layer& layer) const {
  const Gradient& gradient = training_.model[i];
  const bool is_alone = training_.options.exchange == "none";
  std::vector<std::uint64_t> sums(gradient.elements);
  for (int rank = 0; rank < training_.ranks; ++rank) {
    if ((is_alone && rank != rank_) || (training_.options.zero_missing && backward.misses(i, rank))) continue;
    for (int micro_batch = 0; micro_batch < backward.micro_batches(); ++micro_batch) {
      const Inputs inputs = backward.inputs(gradient, i, micro_batch);
      for (std::size_t at = 0; at < gradient.elements; ++at) {
        layer.real[at] += is_integer(gradient.dtype) ? 0 : real_input(inputs, rank, at);
        sums[at] += is_integer(gradient.dtype) ? static_cast<std::uint64_t>(whole_input(inputs, rank, at)) : 0;
      }
    }
  }
  const int ranks = is_alone ? 1 : training_.ranks;
  for (std::size_t at = 0; at < gradient.elements; ++at) {
    layer.real[at] /= ranks;
    layer.whole[at] = wrapped(gradient.dtype, sums[at]) / ranks;
  }
}

double Averages::scale_of(const std::vector<Layer>& averages) const {
  double squares = 0;
  for (const Layer& layer : averages)
    for (const double value : layer.real) squares += value * value;
  const double norm = std::sqrt(squares), most = training_.options.clip_norm;
  return most > 0 && norm > most ? most / norm : 1;
}

/// Inputs are whole numbers whose sum is exact in every type, so that only the average is rounded; in two stages the
/// sum of averages is rounded too, and sparse codecs add shares. Clipping takes the norm of all layers as they were
/// rounded.
double Averages::rounding(std::size_t i, double most) const {
  const double codec = spacing_of_codec(training_.options.coding.codec), own = spacing_of(training_.model[i].dtype);
  const bool is_rounded_once = training_.options.exchange != "hierarchical" && !training_.is_sparse;
  const double largest = is_rounded_once ? most : 64;
  double coarsest = codec;
  for (const Gradient& gradient : training_.model) coarsest = std::max(coarsest, spacing_of(gradient.dtype));
  const double of_clipping = training_.options.clip_norm > 0 ? 8 * most * coarsest : 0;
  return std::max(codec, own) * largest + of_clipping;
}

void Averages::take(const Backward& backward) {
  std::vector<Layer> averages(layers_.size());
  for (std::size_t i = 0; i < averages.size(); ++i) {
    averages[i].real.resize(training_.model[i].elements);
    averages[i].whole.resize(training_.model[i].elements);
    average(backward, i, averages[i]);
  }
  const double scale = scale_of(averages);
  for (std::size_t i = 0; i < averages.size(); ++i) {
    Layer& layer = averages[i];
    double most = 0;
    for (double& value : layer.real) most = std::max(most, std::abs(value *= scale));
    layer.tolerance = rounding(i, most);
    if (!training_.ends_in_weights) continue;
    for (std::size_t at = 0; at < layer.real.size(); ++at)
      layer.real[at] = layers_[i].real[at] - kRate * layer.real[at];
    layer.tolerance = layers_[i].tolerance + layer.tolerance + spacing_of(DType::f32) * 200;
  }
  layers_ = std::move(averages);
}

std::string Averages::flaw_in(const Buffer& result, std::size_t i) const {
  const Layer& layer = layers_[i];
  for (std::size_t at = 0; at < result.count; ++at) {
    if (is_integer(result.dtype)) {
      if (whole_at(result, at) != layer.whole[at])
        return fmt::format("element {} is {} instead of {}", at, whole_at(result, at), layer.whole[at]);
    } else if (const double found = real_at(result, at); !(std::abs(found - layer.real[at]) <= layer.tolerance)) {
      return fmt::format("element {} is {} instead of {} +- {}", at, found, layer.real[at], layer.tolerance);
    }
  }
  return {};
}

}  // namespace syncopate::test
