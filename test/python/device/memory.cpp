// The allocators of the pretended accelerator: memory without values before its first use and after its last one.
#include "memory.hpp"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace device {
namespace {

constexpr size_t kQuarantineBytes = size_t{256} << 20;

struct Block {
  void* real;
  size_t bytes;
  int device;
  int64_t stream;
  std::set<int64_t> others;  // streams of record_stream
};

std::mutex blocks_mutex;
std::map<const void*, Block*> blocks;
std::atomic<size_t> in_use{0};

void* allocated(size_t bytes) {
  void* real = nullptr;
  TORCH_CHECK(posix_memalign(&real, 64, bytes) == 0, "out of memory");
  std::memset(real, kPoison, bytes);
  return real;
}

// A late access reads poison and does not crash: the memory stays for a while.
void quarantine(Block* block) {
  static std::mutex mutex;
  static auto& kept = *new std::deque<Block*>;
  static size_t bytes = 0;
  std::lock_guard lock(mutex);
  kept.push_back(block);
  bytes += block->bytes;
  while (bytes > kQuarantineBytes) {
    Block* oldest = kept.front();
    kept.pop_front();
    bytes -= oldest->bytes;
    std::free(oldest->real);
    delete oldest;
  }
}

struct Freed {
  Block* block;
  std::vector<std::shared_ptr<Mark>> others;  // of the streams of record_stream, which come before
};
auto& freed = *new std::map<std::pair<int, int64_t>, std::vector<Freed>>;  // by device and stream; under blocks_mutex

void release(void* context) {
  auto* block = static_cast<Block*>(context);
  std::lock_guard lock(blocks_mutex);
  blocks.erase(block->real);
  in_use -= block->bytes;
  Freed one{block, {}};
  for (const int64_t id : block->others) {
    one.others.push_back(std::make_shared<Mark>());
    one.others.back()->record(queue(block->device, id));
  }
  freed[{block->device, block->stream}].push_back(std::move(one));
}

// A caching allocator gives freed memory to the next allocation in its stream. Other streams may use it until then:
// FSDP frees gradients that another stream still reads, and lets this stream wait for that one before it allocates.
void reuse(int device, int64_t stream) {
  for (auto& [block, others] : std::exchange(freed[{device, stream}], {}))
    queue(device, stream).put([block, others] {
      for (const auto& other : others) other->wait(1);
      std::memset(block->real, kPoison, block->bytes);
      quarantine(block);
    });
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device device(kType, static_cast<c10::DeviceIndex>(current_device));
    if (bytes == 0) return {nullptr, nullptr, &c10::detail::deleteNothing, device};
    auto* block = new Block{allocated(bytes), bytes, current_device, current_stream[current_device], {}};
    std::lock_guard lock(blocks_mutex);
    blocks[block->real] = block;
    in_use += bytes;
    reuse(block->device, block->stream);
    return {reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block->real) | kDeviceBit), block, &release, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    current_queue(current_device).put([=] { std::memcpy(real_address(to), real_address(from), bytes); });
  }
};

struct Pinned {
  size_t bytes;
  std::shared_ptr<std::atomic<int>> readers;  // copies to a device that are under way
};
std::mutex pinned_mutex;
std::map<const char*, Pinned> pinned;

// The pinned block of an address, or null; the caller has the lock.
const Pinned* find_pinned(const void* address) {
  const auto* at = static_cast<const char*>(address);
  auto it = pinned.upper_bound(at);
  if (it == pinned.begin()) return nullptr;
  --it;
  return at < it->first + it->second.bytes ? &it->second : nullptr;
}

struct PinnedMemory final : at::HostAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* real = allocated(std::max<size_t>(bytes, 64));
    std::lock_guard lock(pinned_mutex);
    pinned[static_cast<char*>(real)] = {std::max<size_t>(bytes, 64), std::make_shared<std::atomic<int>>(0)};
    return {real, real, &free_block, c10::Device(c10::kCPU)};
  }
  static void free_block(void* real) {
    std::lock_guard lock(pinned_mutex);
    pinned.erase(static_cast<char*>(real));
    std::free(real);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_block; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void* /*address*/, void* /*context*/, c10::Stream /*stream*/) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

}  // namespace

c10::Allocator& device_memory() {
  static auto& memory = *new DeviceMemory;
  return memory;
}

at::HostAllocator& pinned_memory() {
  static auto& memory = *new PinnedMemory;
  return memory;
}

void also_used_by(const void* address, int64_t stream) {
  std::lock_guard lock(blocks_mutex);
  const auto it = blocks.find(real_address(address));
  if (it != blocks.end() && it->second->stream != stream) it->second->others.insert(stream);
}

bool is_pinned(const void* address) {
  std::lock_guard lock(pinned_mutex);
  return find_pinned(address) != nullptr;
}

std::function<void()> reads_pinned(const void* address) {
  std::lock_guard lock(pinned_mutex);
  const Pinned* block = find_pinned(address);
  if (block == nullptr) return [] {};
  ++*block->readers;
  return [readers = block->readers] { --*readers; };
}

void poison_target(void* address, size_t bytes) {
  std::lock_guard lock(pinned_mutex);
  const Pinned* block = find_pinned(address);
  if (block != nullptr && *block->readers == 0) std::memset(address, kPoison, bytes);
}

size_t bytes_in_use() { return in_use; }

REGISTER_ALLOCATOR(kType, &device_memory())

}  // namespace device
