// Memory of the pretended accelerator: addresses that the processor faults on, and pinned memory of the host.
#pragma once

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>

#include <cstdint>

#include "queue.hpp"

namespace device {

inline constexpr auto kType = c10::DeviceType::PrivateUse1;
inline constexpr int kPoison = 0xff;                         // as every byte: NaN in each floating-point type
inline constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;  // such an address is not canonical

// Where the simulation keeps the contents of a device address.
inline void* real_address(const void* address) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) & ~kDeviceBit);
}

c10::Allocator& device_memory();
at::HostAllocator& pinned_memory();

// record_stream: the memory is not used again before this stream has carried out what it was given until then.
void also_used_by(const void* address, int64_t stream);

bool is_pinned(const void* address);

// A copy from, or into, pinned memory was put into a stream; what it returns is called when the copy has ended.
std::function<void()> reads_pinned(const void* address);

// Poisons the target of a copy at once, unless a copy from that memory is under way: a reader that does not wait sees
// NaN.
void poison_target(void* address, size_t bytes);

size_t bytes_in_use();

}  // namespace device
