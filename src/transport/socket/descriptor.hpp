// Descriptor: an open file that closes itself, also in a child that is forked without exec.
#pragma once

#include <utility>

#include "base/fork.hpp"

namespace syncopate::transport::socket {

/// Owns a file descriptor. A forked child closes its copy at once: the other end of a connection sees it end when this
/// process ends, not when its last child does.
class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int number);
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)), process_(other.process_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
  base::OwnProcess process_;
};

}  // namespace syncopate::transport::socket
