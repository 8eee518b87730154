// Buffers: aligned memory for received messages, which is used again after a message is released.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "base/guarded.hpp"
#include "server/streams/stream.hpp"

namespace syncopate::server::streams {

/// Small messages get memory of their own. Large ones share blocks of the largest size, so that the system does not map
/// and clear pages for every message. Thread-safe.
class Buffers final : public std::enable_shared_from_this<Buffers> {
 public:
  /// At least `bytes` bytes, aligned by kMessageAlignment. At most kMostMessageBytes.
  [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes) {
    if (bytes <= kSmall) return {allocated(bytes), &release};
    Block block = free_.with([](std::vector<Block>& blocks) {
      if (blocks.empty()) return Block();
      Block last = std::move(blocks.back());
      blocks.pop_back();
      return last;
    });
    if (!block) block = Block(allocated(kMostHeadBytes + kMostBodyBytes));
    return {block.release(), [self = shared_from_this()](std::byte* memory) { self->give(Block(memory)); }};
  }

 private:
  static void release(std::byte* memory) noexcept { ::operator delete(memory, std::align_val_t(kMessageAlignment)); }
  struct Release {
    void operator()(std::byte* memory) const noexcept { release(memory); }
  };
  using Block = std::unique_ptr<std::byte, Release>;
  static constexpr std::size_t kSmall = std::size_t{64} << 10, kMostFree = 16;

  static std::byte* allocated(std::size_t bytes) {
    return static_cast<std::byte*>(::operator new(bytes, std::align_val_t(kMessageAlignment)));
  }
  void give(Block block) {
    free_.with([&](std::vector<Block>& blocks) {
      if (blocks.size() < kMostFree) blocks.push_back(std::move(block));
    });
  }

  base::Guarded<std::vector<Block>> free_;
};

}  // namespace syncopate::server::streams
