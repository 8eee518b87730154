// Buckets: created when gradients first leave together, and kept for later steps.
#include "sync/bucket.hpp"

#include <xxhash.h>

#include <tuple>

#include "sync/weight_updater.hpp"

namespace syncopate::sync {

namespace {
constexpr std::size_t kKeptPerGradient = 4;  // a bucket owns memory for its payloads
}

compress::Tensor whole_tensor(const BucketInputs& inputs, std::size_t i) {
  const Gradient& gradient = inputs.gradients[i];
  const std::size_t rows = gradient.rows == 0 ? gradient.elements : gradient.rows;
  return {.values = inputs.arena.gradient(i),
          .weights = inputs.settings[i].codec->wants_weights ? inputs.weights[i] : Buffer{},
          .rows = rows,
          .columns = gradient.elements / rows,
          .key = XXH3_64bits_withSeed(gradient.name.data(), gradient.name.size(), inputs.seed)};
}

compress::Tensor part_tensor(const BucketInputs& inputs, std::size_t i) {
  compress::Tensor tensor = whole_tensor(inputs, i);
  const bool has_rows = inputs.share.index < inputs.share.count;  // not beyond the smallest host's ranks
  if (inputs.share.count == 1 && has_rows) return tensor;
  const Range rows = has_rows ? even_part(tensor.rows, inputs.share.count, inputs.share.index) : Range{};
  tensor.rows = rows.size();
  tensor.values = Buffer(nullptr, rows.size() * tensor.columns, tensor.values.dtype);
  if (tensor.weights.count > 0)
    tensor.weights =
        Buffer(static_cast<float*>(tensor.weights.data) + rows.begin * tensor.columns, tensor.values.count, DType::f32);
  return tensor;
}

std::vector<std::size_t> state_bytes(const BucketInputs& inputs) {
  std::vector<std::size_t> bytes;
  for (std::size_t i = 0; i < inputs.gradients.size(); ++i) {
    const bool coded = compress::is_coded(inputs.settings[i], whole_tensor(inputs, i));
    bytes.push_back(compress::state_bytes(inputs.settings[i], part_tensor(inputs, i), coded, inputs.share.ranks));
  }
  return bytes;
}

std::string Buckets::name_of(const schedule::Bucket& bucket) const {
  const std::string& first = inputs_.gradients[bucket.first].name;
  return bucket.first == bucket.last ? first : first + " .. " + inputs_.gradients[bucket.last].name;
}

Bucket& Buckets::of(const schedule::Bucket& bucket) {
  const auto found = buckets_.find({bucket.first, bucket.last});
  if (found != buckets_.end()) return found->second;
  Bucket made{.name = name_of(bucket),
              .bytes = inputs_.arena.bytes_of(bucket.first, bucket.last),
              .runs = runs_of(bucket),
              .weights = updater_.weights_of(bucket.first, bucket.last),
              .first = bucket.first,
              .last = bucket.last};
  return buckets_.emplace(std::pair(bucket.first, bucket.last), std::move(made)).first->second;
}

bool Buckets::is_coded(std::size_t gradient) const {
  return compress::is_coded(inputs_.settings[gradient], whole_tensor(inputs_, gradient));
}

/// Groups a bucket's gradients by type, by whether they are coded, and by what; inside a group in forward order.
std::vector<Run> Buckets::runs_of(const schedule::Bucket& bucket) const {
  std::map<std::tuple<DType, bool, std::string>, Run> runs;
  for (std::size_t i = bucket.first; i <= bucket.last; ++i) {
    const bool coded = is_coded(i);
    const std::string codec = coded ? inputs_.settings[i].text() : "";
    Run& run = runs[{inputs_.gradients[i].dtype, coded, codec}];
    run.gradients.push_back(i);
    run.whole.push_back(whole_tensor(inputs_, i));
    run.part.push_back(part_tensor(inputs_, i));
  }
  std::vector<Run> made;
  for (auto& [kind, run] : runs) {
    complete(run, std::get<bool>(kind));
    made.push_back(std::move(run));
  }
  return made;
}

void Buckets::complete(Run& run, bool coded) const {
  const compress::Settings& settings = inputs_.settings[run.gradients.front()];
  run.is_coded = coded && settings.codec->name != "none";
  run.coder = compress::coder_of(settings, coded);
  run.wire_bytes = compress::wire_bytes_of(settings, run.part, coded);
  if (run.wire_bytes > 0) run.wire = inputs_.group.allocate(run.wire_bytes);
}

void Buckets::limit() {
  if (buckets_.size() > kKeptPerGradient * inputs_.gradients.size()) buckets_.clear();
}

}  // namespace syncopate::sync
