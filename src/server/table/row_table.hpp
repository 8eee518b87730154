// RowTable: the rows of a table on one server, which are kept with their state from their first update on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "server/message.hpp"
#include "server/table/row_index.hpp"
#include "server/table/row_rules.hpp"

namespace syncopate::server {

/// Memory for the rows of a server, which its tables share. Thread-safe.
class RowMemory final {
 public:
  explicit RowMemory(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}
  /// Returns false, and takes nothing, if less is left.
  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    std::size_t used = used_bytes_;
    while (bytes <= limit_bytes_ - used)
      if (used_bytes_.compare_exchange_weak(used, used + bytes)) return true;
    return false;
  }
  void give_back(std::size_t bytes) noexcept { used_bytes_ -= bytes; }
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_; }
  [[nodiscard]] std::size_t limit_bytes() const noexcept { return limit_bytes_; }

 private:
  const std::size_t limit_bytes_;
  std::atomic<std::size_t> used_bytes_ = 0;
};

/// A state machine without clock, thread or wire. Law: each worker's pushes are applied once each and in their order,
/// even if they are sent repeatedly. Equal pushes in equal order produce equal bits. A pull changes nothing: a row
/// without an update takes no memory. Used by one thread at a time.
class RowTable final {
 public:
  /// `rules` and `memory` must outlive this.
  RowTable(const RowRules& rules, std::size_t workers, RowMemory& memory);
  ~RowTable() { memory_.give_back(ids_.size() * kept_bytes_); }
  RowTable(const RowTable&) = delete;
  RowTable& operator=(const RowTable&) = delete;

  enum class Taken : std::uint8_t {
    applied,
    repeated,  ///< it was applied before
    early,     ///< an earlier push of the worker is missing: it is on its way again, and so is this one
  };
  /// Push number `push.version` of a worker, counted from 1, whose body holds ids and gradients: a step of the rule for
  /// each of the rows. Throws Corrupt, and Misuse if the memory does not suffice; nothing has changed then.
  [[nodiscard]] Taken push(std::size_t worker, const Message& push);
  /// The rows of these ids, in their order. Throws Corrupt.
  [[nodiscard]] Payload pull(base::ConstBytes ids);
  /// Number of the worker's pushes that are applied.
  [[nodiscard]] std::uint64_t applied_of(std::size_t worker) const noexcept { return applied_[worker]; }
  /// Another process is that worker from now on, and counts its pushes from 1.
  void join(std::size_t worker) noexcept { applied_[worker] = 0; }

  /// The complete state in parts that fit in messages, with their numbers; the last one is marked.
  void image(const std::function<void(Payload bytes, std::uint64_t part, bool is_last)>& take) const;
  /// Part 0 replaces all state. Throws Corrupt, Misuse; the table is then unusable.
  void restore(base::ConstBytes image, std::uint64_t part);

  [[nodiscard]] std::size_t rows() const noexcept { return ids_.size(); }

 private:
  void find(base::ConstBytes ids);
  void require_room();
  std::uint64_t create(std::uint64_t id);
  void update(std::uint64_t place, const std::byte* gradient, double rate);
  [[nodiscard]] float* row(std::uint64_t place) const noexcept {
    return reinterpret_cast<float*>(slabs_[place >> slab_shift_].get()) + (place & slab_mask()) * row_floats_;
  }
  [[nodiscard]] std::uint64_t slab_mask() const noexcept { return (std::uint64_t{1} << slab_shift_) - 1; }
  void clear();

  const RowRules& rules_;
  RowMemory& memory_;
  const std::size_t row_floats_;  ///< weights, then each state
  const std::size_t kept_bytes_;  ///< of a row, with its place in the index
  const unsigned slab_shift_;
  RowIndex index_;
  std::vector<std::shared_ptr<std::byte[]>> slabs_;
  std::vector<std::uint64_t> ids_, steps_;  ///< by place
  std::vector<std::uint64_t> applied_;      ///< by worker
  std::vector<std::uint64_t> places_;       ///< of the ids of a message
  std::vector<float> gradient_;             ///< of a row
};

}  // namespace syncopate::server
