// Heap: memory for a rank's vectors that the other ranks of its host reach directly.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/bytes.hpp"
#include "transport/shm/sealed.hpp"

namespace syncopate::transport::shm {

/// Owns a mapping of sealed memory of any size; none of nothing.
class Mapping final {
 public:
  /// Throws SystemFailure.
  Mapping(const socket::Descriptor& memory, std::uint64_t bytes);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }

 private:
  base::Bytes bytes_;
};

/// This rank's own. Its address range is as large as the machine's memory and costs nothing until it is written; so it
/// is handed to a peer once, and what is allocated later is within that peer's reach too. Thread-safe.
class Heap final : public std::enable_shared_from_this<Heap> {
 public:
  /// Of no size where this process may not map as much as it likes (ulimit -v, ulimit -f).
  [[nodiscard]] static std::shared_ptr<Heap> make() { return of(affordable_bytes()); }
  /// Throws SystemFailure.
  [[nodiscard]] static std::shared_ptr<Heap> of(std::uint64_t bytes);

  /// Whole pages, all zero, which go back to the system with the last owner; null if there is no room.
  [[nodiscard]] std::shared_ptr<std::byte[]> allocate(std::size_t bytes);
  /// Where in the heap `bytes` lie; none if they lie elsewhere.
  [[nodiscard]] std::optional<std::uint64_t> place_of(base::ConstBytes bytes) const noexcept;
  [[nodiscard]] const socket::Descriptor& memory() const noexcept { return memory_; }

 private:
  explicit Heap(std::uint64_t bytes);
  [[nodiscard]] static std::uint64_t affordable_bytes() noexcept;
  [[nodiscard]] std::optional<std::uint64_t> reserve(std::uint64_t bytes);
  void give_back(std::uint64_t place, std::uint64_t bytes) noexcept;

  socket::Descriptor memory_;
  Mapping mapping_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< bytes by place; no two of them touch
};

/// A peer's.
class PeerHeap final {
 public:
  /// Throws Corrupt unless it is sealed, SystemFailure if it cannot be mapped.
  [[nodiscard]] static PeerHeap adopt(const socket::Descriptor& memory) { return PeerHeap(memory); }
  /// Throws Corrupt where that is not within the heap.
  [[nodiscard]] base::Bytes at(std::uint64_t place, std::uint64_t bytes) const;

 private:
  explicit PeerHeap(const socket::Descriptor& memory) : mapping_(memory, sealed_bytes(memory)) {}

  Mapping mapping_;
};

}  // namespace syncopate::transport::shm
