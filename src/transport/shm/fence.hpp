// Fences: hints to the processor that a loop waits for memory, and a fence on all threads of both processes.
#pragma once

namespace syncopate::transport::shm {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// One end writes a record, then checks whether the other sleeps; the other announces its sleep, then looks for records.
// Each write must be visible before the following read. A fence on both sides would cost the writer of every small
// frame a quarter of its time, so only the sleeper pays: the kernel runs a fence on every running thread of all
// registered processes (Linux 4.16).

/// Registers this process; false if the kernel lacks the call. Call it before memory is shared.
[[nodiscard]] bool register_for_membarrier() noexcept;
/// After it, every earlier write of another registered process is visible here, or that process will see every earlier
/// write of this one.
void membarrier_all() noexcept;

}  // namespace syncopate::transport::shm
