// Buckets: created when gradients first leave together, and kept for later steps.
#include "sync/bucket.hpp"

#include <xxhash.h>

#include <numeric>
#include <tuple>

#include "sync/weight_updater.hpp"

namespace syncopate::sync {

Arena::Arena(Group& group, const std::vector<Gradient>& gradients) : slots_(gradients.size()) {
  for (const DType dtype : kDTypes) {
    std::size_t count = 0;
    for (const Gradient& gradient : gradients)
      if (gradient.dtype == dtype) count += gradient.elements;
    if (count == 0) continue;
    const std::size_t width = size_of(dtype);
    std::byte* start = memory_.emplace_back(group.allocate(count * width)).get();
    vectors_.emplace_back(start, count, dtype);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].dtype != dtype) continue;
      slots_[i] = Buffer(start, gradients[i].elements, dtype);
      start += gradients[i].elements * width;
    }
  }
}

Arena::Arena(const std::vector<Gradient>& gradients) {
  for (const Gradient& gradient : gradients) slots_.emplace_back(nullptr, gradient.elements, gradient.dtype);
}

std::size_t Arena::bytes_of(std::size_t first, std::size_t last) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = first; i <= last; ++i) bytes += slots_[i].bytes().size();
  return bytes;
}

namespace {

/// The gradient of its own type, without an address: values of another type are coded alike.
compress::Tensor declared_tensor(const BucketInputs& inputs, std::size_t i) {
  const Gradient& gradient = inputs.gradients[i];
  const std::size_t rows = inputs.cut.rows(i);
  return {.values = Buffer(nullptr, gradient.elements, gradient.dtype),
          .weights = inputs.settings[i].codec->wants_weights ? inputs.weights[i] : Buffer{},
          .rows = rows,
          .columns = gradient.elements / rows,
          .key = XXH3_64bits_withSeed(gradient.name.data(), gradient.name.size(), inputs.seed)};
}

bool is_coded(const BucketInputs& inputs, std::size_t i) {
  return compress::is_coded(inputs.settings[i], declared_tensor(inputs, i));
}

DType coding_type(const BucketInputs& inputs, std::size_t i) {
  return compress::coding_type(inputs.settings[i], inputs.gradients[i].dtype, is_coded(inputs, i));
}

}  // namespace

compress::Tensor whole_tensor(const BucketInputs& inputs, std::size_t i) {
  compress::Tensor tensor = declared_tensor(inputs, i);
  tensor.values.dtype = coding_type(inputs, i);
  if (tensor.values.dtype == inputs.gradients[i].dtype) tensor.values = inputs.arena.gradient(i);
  return tensor;
}

namespace {

/// Not beyond the smallest host's ranks.
bool has_rows(const RowShare& share) { return share.index < share.count; }
bool has_all_rows(const RowShare& share) { return share.count == 1 && has_rows(share); }

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
    const bool coded = is_coded(inputs, i);
    bytes.push_back(compress::state_bytes(inputs.settings[i], part_tensor(inputs, i), coded, inputs.share.ranks));
  }
  return bytes;
}

namespace {

std::string name_between(const BucketInputs& inputs, std::size_t first, std::size_t last) {
  const std::string& name = inputs.gradients[first].name;
  return first == last ? name : name + " .. " + inputs.gradients[last].name;
}

/// Gradients of a coding group have the settings of its first one.
const compress::Settings& settings_of(const BucketInputs& inputs, const CodingGroup& group) {
  return inputs.settings[group.gradients.front()];
}

/// Whether the coder gets gradient i of the group in another type than that of the arena.
bool is_upcast(const CodingGroup& group, const BucketInputs& inputs, std::size_t i) {
  return group.whole[i].values.dtype != inputs.arena.gradient(group.gradients[i]).dtype;
}

std::size_t upcast_elements(const CodingGroup& group, const BucketInputs& inputs) {
  std::size_t elements = 0;
  for (std::size_t i = 0; i < group.gradients.size(); ++i) {
    if (is_upcast(group, inputs, i)) elements += group.whole[i].values.count;
    if (group.part[i].weights.dtype != DType::f32) elements += group.part[i].weights.count;
  }
  return elements;
}

/// Copies of 16-bit gradients and weights, which the tensors of the group point to in their place.
void provide_upcast(CodingGroup& group, const BucketInputs& inputs) {
  group.gradients_upcast.clear();
  group.weights_upcast.clear();
  const std::size_t elements = upcast_elements(group, inputs);
  if (elements == 0) return;
  if (!group.upcast) group.upcast = inputs.group.allocate(elements * sizeof(float));
  auto* next = reinterpret_cast<float*>(group.upcast.get());
  const auto copy_of = [&](Buffer halves, std::vector<Upcast>& copies) {
    const Buffer floats(next, halves.count, DType::f32);
    next += halves.count;
    copies.push_back({halves, floats});
    return floats;
  };
  for (std::size_t i = 0; i < group.gradients.size(); ++i) {
    compress::Tensor &whole = group.whole[i], &part = group.part[i];
    if (is_upcast(group, inputs, i)) {
      whole.values = copy_of(inputs.arena.gradient(group.gradients[i]), group.gradients_upcast);
      if (has_all_rows(inputs.share)) part.values = whole.values;
    }
    if (part.weights.dtype != DType::f32) part.weights = copy_of(part.weights, group.weights_upcast);
  }
}

void provide_wire(CodingGroup& group, const BucketInputs& inputs, bool coded) {
  const std::size_t bytes = compress::wire_bytes_of(settings_of(inputs, group), group.part, coded);
  if (bytes <= group.wire_bytes) return;
  group.wire = inputs.group.allocate(bytes);
  group.wire_bytes = bytes;
}

void provide_memory(CodingGroup& group, const BucketInputs& inputs, bool coded) {
  provide_upcast(group, inputs);
  provide_wire(group, inputs, coded);
}

}  // namespace

// Gradients are grouped by the type that their coder gets, by whether they are coded, and by what; inside a group
// their order stays.
Bucket bucket_of(const BucketInputs& inputs, std::span<const std::size_t> gradients) {
  std::map<std::tuple<DType, bool, std::string>, CodingGroup> groups;
  std::size_t bytes = 0;
  for (const std::size_t i : gradients) {
    const bool coded = is_coded(inputs, i);
    CodingGroup& group = groups[{coding_type(inputs, i), coded, coded ? compress::text_of(inputs.settings[i]) : ""}];
    group.gradients.push_back(i);
    group.whole.push_back(whole_tensor(inputs, i));
    group.part.push_back(part_tensor(inputs, i));
    bytes += inputs.arena.gradient(i).bytes().size();
  }
  Bucket made{.name = name_between(inputs, gradients.front(), gradients.back()),
              .bytes = bytes,
              .groups = {},
              .weights = {},
              .first = gradients.front(),
              .last = gradients.back()};
  for (auto& [kind, group] : groups) {
    const compress::Settings& settings = settings_of(inputs, group);
    const bool coded = std::get<bool>(kind);
    group.is_coded = coded && settings.codec->name != "none";
    group.coder = compress::coder_of(settings, coded);
    provide_memory(group, inputs, coded);
    made.groups.push_back(std::move(group));
  }
  return made;
}

// Gradients that adjoined may lie apart now, and then the payload needs memory of its own.
void follow(Bucket& bucket, const BucketInputs& inputs) {
  for (CodingGroup& group : bucket.groups) {
    for (std::size_t i = 0; i < group.gradients.size(); ++i) {
      group.whole[i] = whole_tensor(inputs, group.gradients[i]);
      group.part[i] = part_tensor(inputs, group.gradients[i]);
    }
    provide_memory(group, inputs, is_coded(inputs, group.gradients.front()));
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
