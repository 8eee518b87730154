// Descriptor: an open file that closes itself, also in a child that is forked without exec.
#pragma once

#include <utility>

#include "base/fork.hpp"
#include "transport/socket/system.hpp"

namespace syncopate::transport::socket {

/// Owns a file descriptor of its system. A forked child closes its copy at once: the other end of a connection sees its
/// end when this process ends, not when its last child does.
class Descriptor final {
 public:
  Descriptor() = default;
  explicit Descriptor(int number, System& system = kernel());
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), system_(other.system_), process_(other.process_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(system_, other.system_);
    std::swap(process_, other.process_);
    return *this;
  }
  ~Descriptor();
  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] System& system() const noexcept { return *system_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
  System* system_ = &kernel();
  base::OwnProcess process_;
};

}  // namespace syncopate::transport::socket
