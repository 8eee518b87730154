// Fiber: a context of the C library begins it, jumps switch it; AddressSanitizer is notified of every switch of stacks.
#include "virtual/fiber.hpp"

#include <ucontext.h>

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
namespace {
void __sanitizer_start_switch_fiber(void** /*keep*/, const void* /*stack*/, std::size_t /*bytes*/) {}
void __sanitizer_finish_switch_fiber(void* /*kept*/, const void** /*stack*/, std::size_t* /*bytes*/) {}
}  // namespace
#endif

namespace syncopate::virtual_world {

namespace {
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
Fiber* current = nullptr;

/// Stacks are reused, because new ones cost page faults.
std::vector<std::unique_ptr<std::byte[]>>& spare_stacks() {
  static std::vector<std::unique_ptr<std::byte[]>> stacks;
  return stacks;
}

/// The compiler's jump, not the library's: longjmp refuses to switch stacks, and swapcontext calls the kernel for the
/// mask of signals. Both ends of a jump lie in different functions.
[[noreturn, gnu::noinline]] void jump(void** to) { __builtin_longjmp(to, 1); }
}  // namespace

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  if (auto& spare = spare_stacks(); !spare.empty()) {
    stack_ = std::move(spare.back());
    spare.pop_back();
  } else {
    stack_.reset(new std::byte[kStackBytes]);
  }
}

Fiber::~Fiber() {
  assert(has_ended_ && "objects on its stack would never be destroyed");
  spare_stacks().push_back(std::move(stack_));
}

Fiber* Fiber::running() noexcept { return current; }

void Fiber::enter() {
  Fiber& self = *current;
  __sanitizer_finish_switch_fiber(nullptr, &self.resumers_stack_, &self.resumers_bytes_);
  self.body_();
  self.has_ended_ = true;
  current = nullptr;
  __sanitizer_start_switch_fiber(nullptr, self.resumers_stack_, self.resumers_bytes_);
  jump(self.resumer_);
}

void Fiber::begin() {
  has_begun_ = true;
  ucontext_t first;
  ::getcontext(&first);
  first.uc_stack.ss_sp = stack_.get();
  first.uc_stack.ss_size = kStackBytes;
  first.uc_link = nullptr;
  ::makecontext(&first, &Fiber::enter, 0);
  ::setcontext(&first);
  std::abort();
}

void Fiber::resume() {
  assert(current == nullptr && !has_ended_);
  current = this;
  void* kept = nullptr;
  __sanitizer_start_switch_fiber(&kept, stack_.get(), kStackBytes);
  if (__builtin_setjmp(resumer_) == 0) {
    if (!has_begun_) begin();
    jump(own_);
  }
  __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
}

void Fiber::suspend() {
  Fiber& self = *std::exchange(current, nullptr);
  void* kept = nullptr;
  __sanitizer_start_switch_fiber(&kept, self.resumers_stack_, self.resumers_bytes_);
  if (__builtin_setjmp(self.own_) == 0) jump(self.resumer_);
  __sanitizer_finish_switch_fiber(kept, &self.resumers_stack_, &self.resumers_bytes_);
}

}  // namespace syncopate::virtual_world
