// A server's rows: their memory, their updates, and images of them.
#include "server/table/row_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/require.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kIdBytes = sizeof(std::uint64_t);
/// Memory is allocated in slabs of about this size, and at least one row.
constexpr std::size_t kSlabBytes = std::size_t{1} << 18;
/// Rows ahead of the one in use that are fetched into the cache.
constexpr std::size_t kAhead = 8;
/// A row has at most four slots of the index, its id and its number of steps.
constexpr std::size_t kPlaceBytes = 64 + 2 * sizeof(std::uint64_t);

std::uint64_t id_at(base::ConstBytes ids, std::size_t i) {
  std::uint64_t id = 0;
  std::memcpy(&id, ids.data() + i * kIdBytes, kIdBytes);
  return id;
}

void fetch(const float* row, std::size_t floats) {
  for (std::size_t i = 0; i < floats; i += 16) __builtin_prefetch(row + i);
}

}  // namespace

RowTable::RowTable(const RowRules& rules, std::size_t workers, RowMemory& memory)
    : rules_(rules),
      memory_(memory),
      row_floats_(rules.width * (1 + rules.states())),
      kept_bytes_(row_floats_ * sizeof(float) + kPlaceBytes),
      slab_shift_(static_cast<unsigned>(
          std::bit_width(std::max<std::size_t>(1, kSlabBytes / (row_floats_ * sizeof(float)))) - 1)),
      applied_(workers),
      gradient_(rules.width) {}

void RowTable::find(base::ConstBytes ids) {
  const std::size_t count = ids.size() / kIdBytes;
  places_.resize(count);
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) index_.prefetch(id_at(ids, i));
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.prefetch(id_at(ids, i + kAhead));
    places_[i] = index_.find(id_at(ids, i));
  }
}

Payload RowTable::pull(base::ConstBytes ids) {
  const std::size_t count = ids.size() / kIdBytes, row_bytes = rules_.row_bytes();
  if (ids.empty() || ids.size() % kIdBytes != 0 || count * row_bytes > std::max(kMostBodyBytes, row_bytes))
    throw Corrupt(fmt::format("a pull of rows has {} bytes of ids", ids.size()));
  find(ids);
  const auto rows = std::make_shared_for_overwrite<float[]>(count * rules_.width);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kAhead < count && places_[i + kAhead] != RowIndex::kNone) fetch(row(places_[i + kAhead]), rules_.width);
    float* const into = rows.get() + i * rules_.width;
    if (places_[i] == RowIndex::kNone)
      rules_.initialise(id_at(ids, i), into);
    else
      std::memcpy(into, row(places_[i]), row_bytes);
  }
  return {rows, std::as_bytes(std::span(rows.get(), count * rules_.width))};
}

RowTable::Taken RowTable::push(std::size_t worker, const Message& push) {
  const base::ConstBytes body = push.body.bytes;
  const std::size_t count = body.size() / rules_.pushed_bytes();
  if (body.empty() || body.size() % rules_.pushed_bytes() != 0 || !std::isfinite(push.rate) || push.rate < 0)
    throw Corrupt(fmt::format("a push of rows of {} bytes with the rate {}", body.size(), push.rate));
  if (push.version <= applied_[worker]) return Taken::repeated;
  if (push.version != applied_[worker] + 1) return Taken::early;
  const base::ConstBytes ids = body.first(count * kIdBytes);
  find(ids);
  require_room();
  const std::byte* gradient = body.data() + ids.size();
  for (std::size_t i = 0; i < count; ++i, gradient += rules_.row_bytes()) {
    if (i + kAhead < count && places_[i + kAhead] != RowIndex::kNone) fetch(row(places_[i + kAhead]), row_floats_);
    update(places_[i] == RowIndex::kNone ? create(id_at(ids, i)) : places_[i], gradient, push.rate);
  }
  ++applied_[worker];
  return Taken::applied;
}

/// Takes the memory of the rows that a push creates.
void RowTable::require_room() {
  const auto created = static_cast<std::size_t>(std::ranges::count(places_, RowIndex::kNone));
  base::require(memory_.take(created * kept_bytes_),
                "a push creates {} rows of table '{}' of {} bytes each, and this server, which keeps {} MiB of rows, "
                "may keep {} MiB (--memory); use more servers, or more memory",
                created, rules_.name, kept_bytes_, memory_.used_bytes() >> 20, memory_.limit_bytes() >> 20);
}

/// The row's place; its memory was taken. A row that a message names twice is created once.
std::uint64_t RowTable::create(std::uint64_t id) {
  if (const std::uint64_t place = index_.find(id); place != RowIndex::kNone) {
    memory_.give_back(kept_bytes_);
    return place;
  }
  const std::uint64_t place = ids_.size();
  if (place >> slab_shift_ == slabs_.size())
    slabs_.push_back(base::zeroed_pages((row_floats_ * sizeof(float)) << slab_shift_));
  ids_.push_back(id);
  steps_.push_back(0);
  index_.insert(id, place);
  rules_.initialise(id, row(place));
  return place;
}

void RowTable::update(std::uint64_t place, const std::byte* gradient, double rate) {
  std::memcpy(gradient_.data(), gradient, rules_.row_bytes());
  float* const own = row(place);
  optim::TensorSlice slice{.weights = {own, rules_.width}, .gradient = gradient_};
  for (std::size_t s = 0; s < rules_.states(); ++s) slice.state[s] = own + (1 + s) * rules_.width;
  rules_.rule.update({.with = rules_.with, .at = {.rate = rate, .step = ++steps_[place]}}, slice);
}

void RowTable::image(const std::function<void(Payload bytes, std::uint64_t part, bool is_last)>& take) const {
  std::string numbers(reinterpret_cast<const char*>(applied_.data()), applied_.size() * kIdBytes);
  take(payload_of(std::move(numbers)), 0, ids_.empty());
  const std::size_t row_bytes = row_floats_ * sizeof(float);
  const std::size_t most = std::max<std::size_t>(1, kMostBodyBytes / (row_bytes + 2 * kIdBytes));
  std::uint64_t part = 0;
  for (std::size_t place = 0; place < ids_.size();) {
    std::string rows;
    for (const std::size_t end = std::min(ids_.size(), place + most); place < end; ++place) {
      for (const std::uint64_t number : {ids_[place], steps_[place]})
        rows.append(reinterpret_cast<const char*>(&number), kIdBytes);
      rows.append(reinterpret_cast<const char*>(row(place)), row_bytes);
    }
    take(payload_of(std::move(rows)), ++part, place == ids_.size());
  }
}

void RowTable::restore(base::ConstBytes image, std::uint64_t part) {
  const std::size_t row_bytes = row_floats_ * sizeof(float), each = part == 0 ? kIdBytes : row_bytes + 2 * kIdBytes;
  if (image.size() % each != 0 || (part == 0 && image.size() != applied_.size() * kIdBytes))
    throw Corrupt(
        fmt::format("an image of rows of table '{}' has {} bytes in part {}", rules_.name, image.size(), part));
  if (part == 0) {
    clear();
    for (std::size_t worker = 0; worker < applied_.size(); ++worker) applied_[worker] = id_at(image, worker);
    return;
  }
  for (base::ConstBytes rest = image; !rest.empty(); rest = rest.subspan(each)) {
    places_.assign(1, RowIndex::kNone);
    require_room();
    const std::uint64_t place = create(id_at(rest, 0));
    steps_[place] = id_at(rest, 1);
    std::memcpy(row(place), rest.data() + 2 * kIdBytes, row_bytes);
  }
}

void RowTable::clear() {
  memory_.give_back(ids_.size() * kept_bytes_);
  index_ = {};
  slabs_.clear();
  ids_.clear();
  steps_.clear();
}

}  // namespace syncopate::server
