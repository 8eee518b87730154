// Heap: memory for a rank's vectors that the other ranks of its host reach directly.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/fork.hpp"
#include "base/mutex.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::transport::shm {

/// Limit of a heap's addresses: the 128 TiB of a process on common machines hold 512 such heaps.
inline constexpr std::uint64_t kMostHeap = std::uint64_t{256} << 30;
/// Bytes of a peer's heap that are mapped at first.
inline constexpr std::uint64_t kFirstMapping = std::uint64_t{1} << 30;

/// Owns a mapping of sealed memory of any size; size 0 maps nothing. A forked child does not have the mapping.
class Mapping final {
 public:
  /// Maps the memory from its begin on. Throws SystemFailure.
  Mapping(const socket::Descriptor& memory, std::uint64_t bytes);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})), process_(other.process_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }
  /// Maps the memory again, from the same place on, in another length: the first mapping stays, and no descriptor is
  /// needed. Throws SystemFailure.
  [[nodiscard]] Mapping again(std::uint64_t bytes) const;

 private:
  Mapping() = default;

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
  /// Passes the memory to a rank over a unix socket. False: the connection is closed, or its buffer is full.
  [[nodiscard]] bool pass(const socket::Descriptor& socket) noexcept;
  /// The descriptor is closed when the memory was passed that often.
  void close_after(std::size_t times) noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return mapping_.bytes().size(); }

 private:
  explicit Heap(std::uint64_t bytes);
  [[nodiscard]] static std::uint64_t affordable_bytes() noexcept;
  [[nodiscard]] std::optional<std::uint64_t> reserve(std::uint64_t bytes);
  void give_back(std::uint64_t place, std::uint64_t bytes) noexcept;

  socket::Descriptor memory_;  ///< used by the thread that uses the transport
  std::size_t passes_left_ = SIZE_MAX;
  Mapping mapping_;
  base::Mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_ SYNCOPATE_GUARDED_BY(mutex_);  ///< bytes by offset; no two entries touch
  base::OwnProcess process_;
};

/// A peer's heap. It is mapped as far as its owner uses it, because a process has fewer addresses than all heaps of a
/// large host: owners allocate from the begin on.
class PeerHeap final {
 public:
  /// Keeps the mapping, and no descriptor. Throws Corrupt unless the memory is sealed, SystemFailure if it cannot be
  /// mapped.
  [[nodiscard]] static PeerHeap adopt(const socket::Descriptor& memory);
  /// Valid as long as this object. Throws Corrupt if the range is not within the heap, SystemFailure if it cannot be
  /// mapped.
  [[nodiscard]] base::Bytes at(std::uint64_t place, std::uint64_t bytes);

 private:
  PeerHeap(Mapping first, std::uint64_t bytes) : bytes_(bytes) { mappings_.push_back(std::move(first)); }

  std::uint64_t bytes_;
  std::vector<Mapping> mappings_;  ///< all from the begin on; each is at least twice as long as the one before
};

}  // namespace syncopate::transport::shm
