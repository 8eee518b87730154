// The C functions that emu.py calls: settings and counters.
#include <ATen/core/Tensor.h>

#include <cstring>

#include "generator.hpp"
#include "memory.hpp"
#include "queue.hpp"

extern "C" {

// The longest delays of operators, and of copies between host and device, in microseconds; the least is half of each.
void emu_delays(int operator_us, int copy_us, unsigned seed) {
  device::settings.operator_us = operator_us;
  device::settings.copy_us = copy_us;
  device::settings.seed = seed;
}

// The current stream of the current device is busy for this time.
void emu_busy(int us) {
  device::current_queue(device::current_device).put([us] {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  });
}

// The rate of copies between host and device in each direction, in bytes per second; 0: no limit.
void emu_copy_rate(double bytes_per_s) { device::settings.copy_bytes_per_s = bytes_per_s; }

// Seeds the generators of all devices when these have carried out what they were given.
void emu_manual_seed(uint64_t seed) {
  for (int device = 0; device < device::kDevices; ++device) {
    for (int64_t id = 0; id <= device::kStreams; ++id) device::queue(device, id).await();
    const std::lock_guard lock(device::generator(device).mutex());
    device::generator(device).set_current_seed(seed);
  }
}

// The state of a device's generator: its bytes, which `state` gets if it is not null.
size_t emu_random_state(int device, void* state) {
  const at::Tensor kept(device::generator(device).get_state());
  if (state != nullptr) std::memcpy(state, kept.data_ptr(), kept.nbytes());
  return kept.nbytes();
}

void emu_set_random_state(int device, const void* state) {
  at::Tensor kept(at::Tensor(device::generator(device).get_state()).clone());
  std::memcpy(kept.data_ptr(), state, kept.nbytes());
  device::generator(device).set_state(kept);
}

long emu_operators() { return device::settings.operators; }
long emu_copies() { return device::settings.copies; }
long emu_host_waits() { return device::settings.host_waits; }
size_t emu_bytes() { return device::bytes_in_use(); }
}
