// Stores past the caches, from the first address that a vector is aligned to.
#include "kernel/stream.hpp"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/stream.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "hwy/cache_control.h"
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

void stream_lanes(float* into, const float* from, std::size_t count) {
  const hn::CappedTag<float, 16> d;
  const std::size_t lanes = hn::Lanes(d), bytes = lanes * sizeof(float);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(into) % bytes;
  std::size_t i = std::min(count, beyond == 0 ? 0 : (bytes - beyond) / sizeof(float));
  std::copy_n(from, i, into);
  for (; i + lanes <= count; i += lanes) hn::Stream(hn::LoadU(d, from + i), d, into + i);
  std::copy_n(from + i, count - i, into + i);
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(stream_lanes);

void stream(float* into, const float* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(stream_lanes)(into, from, count);
  hwy::FlushStream();
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
