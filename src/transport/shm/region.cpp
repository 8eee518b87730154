// Region: the sealed memory that two ranks share, checked before it is mapped.
#include "transport/shm/region.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

#include "syncopate/error.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::transport::shm {

namespace {

// File: words, ring of the maker, ring of the guest. Addresses: words, maker's ring twice, guest's ring twice.
// Words, each in its own lines (processors fetch lines in pairs): two tails, two sleepers, two counts of replies.
constexpr std::size_t kWordBytes = std::size_t{64} << 10;  // a multiple of every page size in use
constexpr std::size_t kFileBytes = kWordBytes + 2 * kRingBytes;
constexpr std::size_t kMappedBytes = kWordBytes + 4 * kRingBytes;
constexpr std::size_t kWordStride = 128, kSleepersAt = 2 * kWordStride, kRepliesAt = 4 * kWordStride;

void place(std::byte* at, std::size_t bytes, int file, std::size_t offset) {
  void* wanted = at;
  if (::mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(offset)) != wanted)
    refuse("map");
}

}  // namespace

Region::Region(socket::Descriptor memory) : memory_(std::move(memory)) {
  void* base = ::mmap(nullptr, kMappedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) refuse("reserve addresses for");
  base_ = static_cast<std::byte*>(base);
  try {
    place(base_, kWordBytes, memory_.number(), 0);
    for (std::size_t half = 0; half < 4; ++half)
      place(base_ + kWordBytes + half * kRingBytes, kRingBytes, memory_.number(), kWordBytes + half / 2 * kRingBytes);
  } catch (const SystemFailure&) {
    ::munmap(base_, kMappedBytes);
    throw;
  }
  ::madvise(base_, kMappedBytes, MADV_DONTFORK);
}

Region Region::make() { return Region(make_sealed(kFileBytes)); }

Region Region::adopt(socket::Descriptor memory) {
  if (const std::uint64_t bytes = sealed_bytes(memory); bytes != kFileBytes)
    throw Corrupt(fmt::format("shared memory has {} bytes instead of {}", bytes, kFileBytes));
  return Region(std::move(memory));
}

Region::Region(Region&& other) noexcept
    : memory_(std::move(other.memory_)), base_(std::exchange(other.base_, nullptr)), process_(other.process_) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(base_, other.base_);
  std::swap(process_, other.process_);
  return *this;
}

Region::~Region() {
  if (base_ != nullptr && !process_.is_inherited()) ::munmap(base_, kMappedBytes);
}

std::byte* Region::ring(Side writer) const noexcept {
  return base_ + kWordBytes + static_cast<std::size_t>(writer) * 2 * kRingBytes;
}

std::uint64_t* Region::tail(Side writer) const noexcept {
  return reinterpret_cast<std::uint64_t*>(base_ + static_cast<std::size_t>(writer) * kWordStride);
}

std::uint64_t* Region::sleeper(Side side) const noexcept {
  return reinterpret_cast<std::uint64_t*>(base_ + kSleepersAt + static_cast<std::size_t>(side) * kWordStride);
}

std::uint64_t* Region::replies(Side side) const noexcept {
  return reinterpret_cast<std::uint64_t*>(base_ + kRepliesAt + static_cast<std::size_t>(side) * kWordStride);
}

}  // namespace syncopate::transport::shm
