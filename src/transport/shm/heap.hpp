// Heap: memory for a rank's vectors that the other ranks of its host reach directly.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "base/bytes.hpp"
#include "base/fork.hpp"
#include "base/mutex.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::transport::shm {

/// Limit of a heap's addresses: the 128 TiB of a process on common machines hold 512 such heaps.
inline constexpr std::uint64_t kMostHeap = std::uint64_t{256} << 30;
/// A peer's heap is mapped from multiples of this.
inline constexpr std::uint64_t kWindow = std::uint64_t{1} << 30;

/// Owns a mapping of sealed memory of any size; size 0 maps nothing. A forked child does not have the mapping.
class Mapping final {
 public:
  /// Maps the memory from `begin` on. Throws SystemFailure.
  Mapping(const socket::Descriptor& memory, std::uint64_t bytes, std::uint64_t begin = 0);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})), process_(other.process_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }

 private:
  base::Bytes bytes_;
  base::OwnProcess process_;
};

/// This rank's own heap. Its address range is as large as the machine's memory, within kMostHeap, and costs nothing
/// until it is written; a peer therefore receives it once, and also reaches memory that is allocated later.
/// Thread-safe.
class Heap final : public std::enable_shared_from_this<Heap> {
 public:
  /// Has size 0 if this process may not map without limit (ulimit -v, ulimit -f).
  [[nodiscard]] static std::shared_ptr<Heap> make() { return of(affordable_bytes()); }
  /// Throws SystemFailure.
  [[nodiscard]] static std::shared_ptr<Heap> of(std::uint64_t bytes);

  /// Whole pages, all zero. They return to the system with their last owner in this process. Null if there is no room.
  [[nodiscard]] std::shared_ptr<std::byte[]> allocate(std::size_t bytes);
  /// Offset of `bytes` in the heap; empty if they lie elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> place_of(base::ConstBytes bytes) const noexcept;
  [[nodiscard]] const socket::Descriptor& memory() const noexcept { return memory_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return mapping_.bytes().size(); }

 private:
  explicit Heap(std::uint64_t bytes);
  [[nodiscard]] static std::uint64_t affordable_bytes() noexcept;
  [[nodiscard]] std::optional<std::uint64_t> reserve(std::uint64_t bytes);
  void give_back(std::uint64_t place, std::uint64_t bytes) noexcept;

  socket::Descriptor memory_;
  Mapping mapping_;
  base::Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ SYNCOPATE_GUARDED_BY(mutex_);  ///< bytes by offset; no two entries touch
  base::OwnProcess process_;
};

/// A peer's heap. It is mapped in windows, on use: a process has fewer addresses than all heaps of a large host.
class PeerHeap final {
 public:
  /// Throws Corrupt unless it is sealed.
  [[nodiscard]] static PeerHeap adopt(socket::Descriptor memory);
  /// Throws Corrupt if the range is not within the heap or longer than kWindow, SystemFailure if it cannot be mapped.
  [[nodiscard]] base::Bytes at(std::uint64_t place, std::uint64_t bytes);

 private:
  PeerHeap(socket::Descriptor memory, std::uint64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}

  socket::Descriptor memory_;
  std::uint64_t bytes_;
  std::map<std::uint64_t, Mapping> windows_;  ///< by number; each ends where the next one begins
};

}  // namespace syncopate::transport::shm
