// RowTable: the rows of a table on one server, which are kept with their state from their first update on.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "server/job/row_rules.hpp"
#include "server/message.hpp"
#include "server/rows/row_index.hpp"
#include "server/rows/row_marks.hpp"

namespace syncopate::server {

/// Memory for the rows of a server, which its tables share. Thread-safe.
class RowMemory final {
 public:
  explicit RowMemory(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  /// Returns false, and reserves nothing, if less is left.
  [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
    std::size_t used = used_bytes_;
    while (bytes <= limit_bytes_ - used)
      if (used_bytes_.compare_exchange_weak(used, used + bytes)) return true;
    return false;
  }
  void release(std::size_t bytes) noexcept { used_bytes_ -= bytes; }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_; }
  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> used_bytes_ = 0;
};

/// A state machine without clock, thread or wire. Law: each worker's pushes are applied once each and in their order,
/// even if they are sent repeatedly. Equal pushes in equal order produce equal bits. A pull changes nothing: a row
/// without an update takes no memory. An image shares the memory of the rows: a slab that is in an image is copied
/// before it changes. Used by one thread at a time; images may be read by others.
class RowTable final {
 public:
  /// `rules` and `memory` must outlive this.
  RowTable(const RowRules& rules, std::size_t workers, RowMemory& memory, Clock first_step = 0);
  ~RowTable() { memory_.release(rows_ * kept_bytes_); }
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  enum class Taken : std::uint8_t {
    applied,
    repeated,  ///< it was applied before
    early,     ///< an earlier push of the worker is missing: it is on its way again, and so is this one
  };
  /// A worker's push. PushRows: a step of the rule for each of the rows. MarkRows: see RowMarks. Throws Corrupt, and
  /// Refusal if the memory does not suffice; nothing has changed then.
  [[nodiscard]] Taken push(std::size_t worker, const RowPush& push);
  /// The rows of these ids, in their order. Throws Corrupt.
  [[nodiscard]] Payload pull(base::ConstBytes ids);
  [[nodiscard]] RowMarks& marks() noexcept { return marks_; }

  /// The complete state in parts that fit in messages, with their numbers; the last one is marked.
  void image(const std::function<void(Payload bytes, std::uint64_t part, bool is_last)>& take);
  /// Part 0 replaces all state. Throws Corrupt, Misuse; the table is then unusable.
  void restore(base::ConstBytes image, std::uint64_t part);
  [[nodiscard]] bool is_whole() const noexcept { return rows_ == imaged_rows_; }  ///< `restore` has got all parts
  /// After `restore`: every worker takes part as another process, from this step on.
  void begin_again(Clock step) { marks_ = {workers_, step}; }
  /// Rows are created in places that they keep, so that a visit of all slabs has every row once.
  [[nodiscard]] std::size_t slabs() const noexcept { return slabs_.size(); }
  [[nodiscard]] std::size_t rows_in(std::size_t slab) const noexcept {
    return std::min(layout_.rows, rows_ - slab * layout_.rows);
  }
  [[nodiscard]] Payload slab(std::size_t index);  ///< as `image` shares it

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }

 private:
  struct Slab {
    std::shared_ptr<std::byte[]> bytes{};
    bool is_shared = false;  ///< with an image, so that it is copied before it changes
  };
  void find(base::ConstBytes ids);
  void require_room(std::size_t created);
  void require_sound(const PushRows& push) const;
  void require_sound(const RestoreRows& push) const;
  static void require_sound(const MarkRows& mark);
  void apply(const PushRows& push);
  void apply(const RestoreRows& push);
  void apply(const MarkRows& /*mark*/) {}
  std::uint64_t create(std::uint64_t id);
  void update(std::uint64_t place, const std::byte* gradient, double rate);
  void restore_numbers(base::ConstBytes numbers);
  void restore_slab(base::ConstBytes rows);
  [[nodiscard]] const std::byte* slab_of(std::uint64_t place) const noexcept {
    return slabs_[place >> slab_shift_].bytes.get();
  }
  [[nodiscard]] std::byte* own_slab_of(std::uint64_t place);
  [[nodiscard]] const float* row(std::uint64_t place) const noexcept {
    return reinterpret_cast<const float*>(slab_of(place) + layout_.values(in_slab(place)));
  }
  [[nodiscard]] std::size_t in_slab(std::uint64_t place) const noexcept { return place & (layout_.rows - 1); }
  void clear();

  const RowRules& rules_;
  RowMemory& memory_;
  const std::size_t workers_;
  const RowLayout layout_;        ///< of a slab
  const std::size_t kept_bytes_;  ///< of a row, with its place in the index
  const unsigned slab_shift_;
  RowIndex index_;
  std::vector<Slab> slabs_;
  std::size_t rows_ = 0, imaged_rows_ = 0;  ///< `imaged_rows_`: of the image that is restored
  RowMarks marks_;
  std::vector<std::uint64_t> places_;  ///< of the ids of a message
  std::vector<float> gradient_;        ///< of a row
};

}  // namespace syncopate::server
