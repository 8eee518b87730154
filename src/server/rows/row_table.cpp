// A server's rows: their memory, their updates, and images of them.
#include "server/rows/row_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/require.hpp"
#include "server/refusal.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kIdBytes = sizeof(std::uint64_t);
/// Rows ahead of the one in use that are fetched into the cache.
constexpr std::size_t kAhead = 8;
/// A row has at most four slots of the index, next to those of the smaller table while the index grows.
constexpr std::size_t kPlaceBytes = 64;

std::uint64_t id_at(base::ConstBytes ids, std::size_t i) {
  std::uint64_t id = 0;
  std::memcpy(&id, ids.data() + i * kIdBytes, kIdBytes);
  return id;
}

void fetch(const float* row, std::size_t floats) {
  for (std::size_t i = 0; i < floats; i += 16) __builtin_prefetch(row + i);
}

}  // namespace

RowTable::RowTable(const RowRules& rules, std::size_t workers, RowMemory& memory, Clock first_step)
    : rules_(rules),
      memory_(memory),
      workers_(workers),
      layout_(rules.layout_of(rules.rows_per_slab())),
      kept_bytes_(rules.layout_of(1).bytes() + kPlaceBytes),
      slab_shift_(static_cast<unsigned>(std::bit_width(layout_.rows) - 1)),
      marks_(workers, first_step),
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

RowTable::Taken RowTable::push(std::size_t worker, const RowPush& push) {
  std::visit([&](const auto& sent) { require_sound(sent); }, push);
  const std::uint64_t number = std::visit([](const auto& sent) { return sent.number; }, push);
  if (number <= marks_.applied_of(worker)) return Taken::repeated;
  if (number != marks_.applied_of(worker) + 1) return Taken::early;
  std::visit([&](const auto& sent) { apply(sent); }, push);
  marks_.apply(worker, push);
  return Taken::applied;
}

void RowTable::require_sound(const PushRows& push) const {
  const std::size_t bytes = push.rows.bytes.size();
  if (bytes == 0 || bytes % rules_.pushed_bytes() != 0 || !std::isfinite(push.rate) || push.rate < 0)
    throw Corrupt(fmt::format("a push of rows of {} bytes with the rate {}", bytes, push.rate));
}

void RowTable::require_sound(const RestoreRows& push) const {
  const std::size_t bytes = push.rows.bytes.size();
  if (bytes == 0 || bytes % rules_.layout_of(1).bytes() != 0)
    throw Corrupt(fmt::format("rows with their state of {} bytes", bytes));
}

void RowTable::require_sound(const MarkRows& mark) {
  if (mark.meets && mark.steps == 0 && mark.meeting == 0)
    throw Corrupt("a mark of rows has neither a number of steps nor one of a meeting");
}

void RowTable::apply(const PushRows& push) {
  const base::ConstBytes body = push.rows.bytes;
  const std::size_t count = body.size() / rules_.pushed_bytes(), floats = rules_.kept_floats();
  const base::ConstBytes ids = body.first(count * kIdBytes);
  find(ids);
  require_room(static_cast<std::size_t>(std::ranges::count(places_, RowIndex::kNone)));
  const std::byte* gradient = body.data() + ids.size();
  for (std::size_t i = 0; i < count; ++i, gradient += rules_.row_bytes()) {
    if (i + kAhead < count && places_[i + kAhead] != RowIndex::kNone) fetch(row(places_[i + kAhead]), floats);
    update(places_[i] == RowIndex::kNone ? create(id_at(ids, i)) : places_[i], gradient, push.rate);
  }
}

/// Several workers may restore the same rows, and one of them may have pushed some before another restores them.
void RowTable::apply(const RestoreRows& push) {
  const base::ConstBytes rows = push.rows.bytes;
  const RowLayout from = rules_.layout_of(rows.size() / rules_.layout_of(1).bytes());
  find(rows.first(from.steps(0)));
  require_room(static_cast<std::size_t>(std::ranges::count(places_, RowIndex::kNone)));
  for (std::size_t i = 0; i < from.rows; ++i) {
    if (places_[i] != RowIndex::kNone) continue;
    const std::uint64_t place = create(id_at(rows, i));
    std::byte* const slab = own_slab_of(place);
    std::memcpy(slab + layout_.steps(in_slab(place)), rows.data() + from.steps(i), kIdBytes);
    std::memcpy(slab + layout_.values(in_slab(place)), rows.data() + from.values(i), from.row_bytes);
  }
}

/// Takes the memory of rows that a message creates.
void RowTable::require_room(std::size_t created) {
  if (memory_.reserve(created * kept_bytes_)) return;
  throw Refusal(fmt::format(
      "a push creates {} rows of table '{}' of {} bytes each, and this server, which keeps {} MiB of rows, may keep {} "
      "MiB (--memory); use more servers, or more memory",
      created, rules_.name, kept_bytes_, memory_.used_bytes() >> 20, memory_.limit_bytes() >> 20));
}

/// Copies the slab if an image shares it.
std::byte* RowTable::own_slab_of(std::uint64_t place) {
  Slab& slab = slabs_[place >> slab_shift_];
  if (slab.is_shared) {
    auto copy = base::zeroed_pages(layout_.bytes());
    std::memcpy(copy.get(), slab.bytes.get(), layout_.bytes());
    slab = {std::move(copy), false};
  }
  return slab.bytes.get();
}

/// The row's place; its memory was taken. A row that a message names twice is created once.
std::uint64_t RowTable::create(std::uint64_t id) {
  if (const std::uint64_t place = index_.find(id); place != RowIndex::kNone) {
    memory_.release(kept_bytes_);
    return place;
  }
  const std::uint64_t place = rows_++;
  if (place >> slab_shift_ == slabs_.size()) slabs_.push_back({base::zeroed_pages(layout_.bytes())});
  index_.insert(id, place);
  std::byte* const slab = own_slab_of(place);
  std::memcpy(slab + layout_.id(in_slab(place)), &id, kIdBytes);
  rules_.initialise(id, reinterpret_cast<float*>(slab + layout_.values(in_slab(place))));
  return place;
}

void RowTable::update(std::uint64_t place, const std::byte* gradient, double rate) {
  std::memcpy(gradient_.data(), gradient, rules_.row_bytes());
  std::byte* const slab = own_slab_of(place);
  auto* const steps = reinterpret_cast<std::uint64_t*>(slab + layout_.steps(in_slab(place)));
  auto* const own = reinterpret_cast<float*>(slab + layout_.values(in_slab(place)));
  optim::TensorSlice slice{.weights = {own, rules_.width}, .gradient = gradient_};
  for (std::size_t s = 0; s < rules_.states(); ++s) slice.state[s] = own + (1 + s) * rules_.width;
  rules_.rule.update({.with = rules_.with, .at = {.rate = rate, .step = ++*steps}}, slice);
}

Payload RowTable::slab(std::size_t index) {
  slabs_[index].is_shared = true;
  const std::shared_ptr<std::byte[]>& bytes = slabs_[index].bytes;
  return {bytes, {bytes.get(), layout_.bytes()}};
}

/// Part 0: the number of rows, and the marks. Then the slabs.
void RowTable::image(const std::function<void(Payload bytes, std::uint64_t part, bool is_last)>& take) {
  const std::uint64_t rows = rows_;
  std::string numbers(reinterpret_cast<const char*>(&rows), sizeof rows);
  marks_.write_to(numbers);
  take(payload_of(std::move(numbers)), 0, slabs_.empty());
  for (std::size_t i = 0; i < slabs_.size(); ++i) take(slab(i), 1 + i, 1 + i == slabs_.size());
}

void RowTable::restore(base::ConstBytes image, std::uint64_t part) {
  const std::size_t length = part == 0 ? sizeof(std::uint64_t) + marks_.written_bytes() : layout_.bytes();
  if (image.size() != length || (part > 0 && (part != slabs_.size() + 1 || is_whole())))
    throw Corrupt(
        fmt::format("an image of rows of table '{}' has {} bytes in part {}", rules_.name, image.size(), part));
  return part == 0 ? restore_numbers(image) : restore_slab(image);
}

void RowTable::restore_numbers(base::ConstBytes numbers) {
  clear();
  imaged_rows_ = id_at(numbers, 0);
  marks_.read_from(numbers.subspan(sizeof(std::uint64_t)));
}

void RowTable::restore_slab(base::ConstBytes rows) {
  const std::size_t count = std::min(layout_.rows, imaged_rows_ - rows_);
  base::require(memory_.reserve(count * kept_bytes_),
                "the rows of table '{}' exceed the {} MiB that this server may keep (--memory); allow it more memory",
                rules_.name, memory_.limit_bytes() >> 20);
  slabs_.push_back({base::zeroed_pages(layout_.bytes())});
  std::memcpy(slabs_.back().bytes.get(), rows.data(), rows.size());
  const std::uint64_t first = std::exchange(rows_, rows_ + count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t id = id_at(rows, i);
    if (index_.find(id) != RowIndex::kNone)
      throw Corrupt(fmt::format("an image of rows of table '{}' has row {} twice", rules_.name, id));
    index_.insert(id, first + i);
  }
}

void RowTable::clear() {
  memory_.release(rows_ * kept_bytes_);
  index_ = RowIndex();
  slabs_.clear();
  rows_ = 0;
}

}  // namespace syncopate::server
