// Poller: waits for many descriptors and for a wake-up from another thread.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "transport/socket/socket.hpp"

namespace syncopate::transport::socket {

struct Ready {
  std::uint64_t key = 0;
  std::uint32_t events = 0;  ///< EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR
};

/// Used by one thread, except `wake`.
class Poller final {
 public:
  Poller();
  void add(const Descriptor& what, std::uint64_t key, std::uint32_t events);
  void change(const Descriptor& what, std::uint64_t key, std::uint32_t events) noexcept;
  void remove(const Descriptor& what) noexcept;
  /// Waits until something is ready, `wake`, or the deadline. Wake-ups are not among the results, which stay valid
  /// until the next call. Throws SystemFailure.
  [[nodiscard]] std::span<const Ready> wait(base::Time deadline);
  void wake() noexcept;

 private:
  Descriptor epoll_;
  Descriptor wake_;
  bool is_coarse_ = false;  ///< the system cannot wait by nanoseconds
  std::vector<epoll_event> raw_;
  std::vector<Ready> ready_;
};

}  // namespace syncopate::transport::socket
