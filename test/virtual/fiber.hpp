// Fiber: a program that can be suspended in a wait and resumed, so that many share one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace syncopate::virtual_world {

/// The body must not let exceptions out, nor be suspended while it handles one.
class Fiber final {
 public:
  explicit Fiber(std::function<void()> body);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();
  /// Runs the body until it suspends itself or ends.
  void resume();
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  /// Returns to the caller that resumed the running fiber.
  static void suspend();
  /// The running fiber; null outside of all.
  [[nodiscard]] static Fiber* running() noexcept;

 private:
  static void enter();
  [[noreturn]] void begin();
  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  void* own_[5] = {};  ///< where it continues
  void* resumer_[5] = {};
  bool has_begun_ = false;
  const void* resumers_stack_ = nullptr;  ///< for AddressSanitizer
  std::size_t resumers_bytes_ = 0;
  bool has_ended_ = false;
};

}  // namespace syncopate::virtual_world
