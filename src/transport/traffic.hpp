// LinkTraffic: the number of bytes that a rank's links have moved.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace syncopate::transport {

/// Written by the polling thread, read by any thread.
class ByteCounter final {
 public:
  /// There is one writer, so a plain addition is enough, without a locked instruction.
  void add(std::uint64_t bytes) noexcept {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> bytes_{0};
};

/// The traffic of all links of one kind of a rank.
struct LinkTraffic {
  ByteCounter sent, received;
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> bytes() const noexcept {
    return {sent.bytes(), received.bytes()};
  }
};

}  // namespace syncopate::transport
