// Buckets: created when gradients first leave together, and kept for later steps.
#include "sync/bucket.hpp"

#include <xxhash.h>

#include <numeric>
#include <tuple>

#include "sync/weight_updater.hpp"

namespace syncopate::sync {

namespace {
constexpr std::size_t kKeptPerGradient = 4;  // a bucket owns memory for its payloads
}

compress::Tensor whole_tensor(const BucketInputs& inputs, std::size_t i) {
  const Gradient& gradient = inputs.gradients[i];
  const std::size_t rows = inputs.cut.rows(i);
  const compress::Settings& settings = inputs.settings[i];
  compress::Tensor tensor{.values = inputs.arena.gradient(i),
                          .weights = settings.codec->wants_weights ? inputs.weights[i] : Buffer{},
                          .rows = rows,
                          .columns = gradient.elements / rows,
                          .key = XXH3_64bits_withSeed(gradient.name.data(), gradient.name.size(), inputs.seed)};
  const DType type = compress::coding_type(settings, gradient.dtype, compress::is_coded(settings, tensor));
  if (type != gradient.dtype) tensor.values = Buffer(nullptr, tensor.values.count, type);
  return tensor;
}

namespace {

/// Not beyond the smallest host's ranks.
bool has_rows(const Share& share) { return share.index < share.count; }
bool has_all_rows(const Share& share) { return share.count == 1 && has_rows(share); }

}  // namespace

compress::Tensor part_tensor(const BucketInputs& inputs, std::size_t i) {
  compress::Tensor tensor = whole_tensor(inputs, i);
  if (has_all_rows(inputs.share)) return tensor;
  const Range rows = has_rows(inputs.share) ? inputs.cut.rows_of(i, inputs.share.index) : Range{};
  tensor.rows = rows.size();
  tensor.values = Buffer(nullptr, rows.size() * tensor.columns, tensor.values.dtype);
  if (tensor.weights.count > 0) {
    const DType type = tensor.weights.dtype;
    std::byte* const begin = tensor.weights.bytes().data() + rows.begin * tensor.columns * size_of(type);
    tensor.weights = Buffer(begin, tensor.values.count, type);
  }
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

namespace {

std::string name_between(const BucketInputs& inputs, std::size_t first, std::size_t last) {
  const std::string& name = inputs.gradients[first].name;
  return first == last ? name : name + " .. " + inputs.gradients[last].name;
}

/// Gradients of a run have the settings of its first one.
const compress::Settings& settings_of(const BucketInputs& inputs, const Run& run) {
  return inputs.settings[run.gradients.front()];
}

/// Whether the coder gets gradient i of the run in another type than that of the arena.
bool is_upcast(const Run& run, const BucketInputs& inputs, std::size_t i) {
  return run.whole[i].values.dtype != inputs.arena.gradient(run.gradients[i]).dtype;
}

std::size_t upcast_elements(const Run& run, const BucketInputs& inputs) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < run.gradients.size(); ++i) {
    if (is_upcast(run, inputs, i)) elements += run.whole[i].values.count;
    if (run.part[i].weights.dtype != DType::f32) elements += run.part[i].weights.count;
  }
  return elements;
}

/// Copies of 16-bit gradients and weights, which the run's tensors point to in their place.
void provide_upcast(Run& run, const BucketInputs& inputs) {
  run.gradients_upcast.clear();
  run.weights_upcast.clear();
  const std::size_t elements = upcast_elements(run, inputs);
  if (elements == 0) return;
  if (!run.upcast) run.upcast = inputs.group.allocate(elements * sizeof(float));
  auto* next = reinterpret_cast<float*>(run.upcast.get());
  const auto copy_of = [&](Buffer halves, std::vector<Upcast>& copies) {
    const Buffer floats(next, halves.count, DType::f32);
    next += halves.count;
    copies.push_back({halves, floats});
    return floats;
  };
  for (std::size_t i = 0; i < run.gradients.size(); ++i) {
    compress::Tensor &whole = run.whole[i], &part = run.part[i];
    if (is_upcast(run, inputs, i)) {
      whole.values = copy_of(inputs.arena.gradient(run.gradients[i]), run.gradients_upcast);
      if (has_all_rows(inputs.share)) part.values = whole.values;
    }
    if (part.weights.dtype != DType::f32) part.weights = copy_of(part.weights, run.weights_upcast);
  }
}

void provide_wire(Run& run, const BucketInputs& inputs, bool coded) {
  const std::size_t bytes = compress::wire_bytes_of(settings_of(inputs, run), run.part, coded);
  if (bytes <= run.wire_bytes) return;
  run.wire = inputs.group.allocate(bytes);
  run.wire_bytes = bytes;
}

void provide_memory(Run& run, const BucketInputs& inputs, bool coded) {
  provide_upcast(run, inputs);
  provide_wire(run, inputs, coded);
}

bool is_coded(const BucketInputs& inputs, const Run& run) {
  return compress::is_coded(settings_of(inputs, run), run.whole.front());
}

}  // namespace

// Gradients are grouped by the type that their coder gets, by whether they are coded, and by what; inside a group their
// order stays.
Bucket bucket_of(const BucketInputs& inputs, std::span<const std::size_t> gradients) {
  std::map<std::tuple<DType, bool, std::string>, Run> runs;
  std::size_t bytes = 0;
  for (const std::size_t i : gradients) {
    const compress::Tensor whole = whole_tensor(inputs, i);
    const bool coded = compress::is_coded(inputs.settings[i], whole);
    Run& run = runs[{whole.values.dtype, coded, coded ? inputs.settings[i].text() : ""}];
    run.gradients.push_back(i);
    run.whole.push_back(whole);
    run.part.push_back(part_tensor(inputs, i));
    bytes += inputs.arena.gradient(i).bytes().size();
  }
  Bucket made{.name = name_between(inputs, gradients.front(), gradients.back()),
              .bytes = bytes,
              .runs = {},
              .weights = {},
              .first = gradients.front(),
              .last = gradients.back()};
  for (auto& [kind, run] : runs) {
    const compress::Settings& settings = settings_of(inputs, run);
    const bool coded = std::get<bool>(kind);
    run.is_coded = coded && settings.codec->name != "none";
    run.coder = compress::coder_of(settings, coded);
    provide_memory(run, inputs, coded);
    made.runs.push_back(std::move(run));
  }
  return made;
}

// Gradients that adjoined may lie apart now, and then the payload needs memory of its own.
void follow(Bucket& bucket, const BucketInputs& inputs) {
  for (Run& run : bucket.runs) {
    for (std::size_t i = 0; i < run.gradients.size(); ++i) {
      run.whole[i] = whole_tensor(inputs, run.gradients[i]);
      run.part[i] = part_tensor(inputs, run.gradients[i]);
    }
    provide_memory(run, inputs, is_coded(inputs, run));
  }
}

std::string Buckets::name_of(const schedule::Bucket& bucket) const {
  return name_between(inputs_, bucket.first, bucket.last);
}

Bucket& Buckets::of(const schedule::Bucket& bucket) {
  const auto found = buckets_.find({bucket.first, bucket.last});
  if (found != buckets_.end()) return found->second;
  std::vector<std::size_t> gradients(bucket.last - bucket.first + 1);
  std::iota(gradients.begin(), gradients.end(), bucket.first);
  Bucket made = bucket_of(inputs_, gradients);
  made.weights = updater_.weights_of(bucket.first, bucket.last);
  return buckets_.emplace(std::pair(bucket.first, bucket.last), std::move(made)).first->second;
}

void Buckets::limit() {
  if (buckets_.size() > kKeptPerGradient * inputs_.gradients.size()) buckets_.clear();
}

}  // namespace syncopate::sync
