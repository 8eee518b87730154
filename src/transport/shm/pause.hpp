// Pause: hints to the processor that a loop waits for memory to change.
#pragma once

namespace syncopate::transport::shm {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace syncopate::transport::shm
