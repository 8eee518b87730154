// The kernel as a System: the machine's clock, random bytes and sockets.
#include <openssl/rand.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <set>

#include "base/mutex.hpp"
#include "syncopate/error.hpp"
#include "transport/socket/kernel_watcher.hpp"
#include "transport/socket/system.hpp"

namespace syncopate::transport::socket {

namespace {

msghdr message_of(std::span<iovec> pieces) noexcept {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

/// All open descriptors of this process. Locked while the process forks, so that the child's copy is consistent.
class OpenFiles final {
 public:
  OpenFiles() {
    // The lock is held from the first to the second or the third.
    ::pthread_atfork([]() SYNCOPATE_UNCHECKED { of_process().mutex_.lock(); },
                     []() SYNCOPATE_UNCHECKED { of_process().mutex_.unlock(); },
                     []() SYNCOPATE_UNCHECKED { of_process().close_in_child(); });
  }
  static OpenFiles& of_process() {
    static OpenFiles& files = *new OpenFiles;  // never destroyed: descriptors may outlive every static object
    return files;
  }
  void add(int number) {
    const base::Lock lock(mutex_);
    numbers_.insert(number);
  }
  void close(int number) noexcept {
    const base::Lock lock(mutex_);
    numbers_.erase(number);
    ::close(number);
  }

 private:
  void close_in_child() noexcept SYNCOPATE_THREAD_SAFETY(release_capability(mutex_)) {
    for (const int number : numbers_) ::close(number);
    numbers_.clear();
    mutex_.unlock();
  }

  base::Mutex mutex_;
  std::set<int> numbers_ SYNCOPATE_GUARDED_BY(mutex_);
};

class Kernel final : public System {
 public:
  base::Time now() const override { return std::chrono::steady_clock::now(); }
  void draw(base::Bytes into) override {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(into.data()), static_cast<int>(into.size())) != 1)
      throw SystemFailure("the system returned no random bytes");
  }
  std::size_t most_descriptors() noexcept override {
    rlimit limit{};
    const bool is_limited = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? limit.rlim_cur : SIZE_MAX;
  }
  std::unique_ptr<Watcher> watcher() override { return kernel_watcher(); }

  int open(int family) noexcept override { return ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }
  void set(int socket, int level, int option, int value) noexcept override {
    ::setsockopt(socket, level, option, &value, sizeof value);
  }
  int bind(int socket, const Address& to) noexcept override { return ::bind(socket, to.raw(), to.size()); }
  int listen(int socket) noexcept override { return ::listen(socket, SOMAXCONN); }
  int connect(int socket, const Address& to) noexcept override { return ::connect(socket, to.raw(), to.size()); }
  int accept(int listener) noexcept override {
    return ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  }
  ssize_t receive(int socket, std::span<iovec> into) noexcept override {
    if (into.size() == 1) return ::recv(socket, into[0].iov_base, into[0].iov_len, MSG_DONTWAIT);
    msghdr message = message_of(into);
    return ::recvmsg(socket, &message, MSG_DONTWAIT);
  }
  ssize_t send(int socket, std::span<iovec> from) noexcept override {
    if (from.size() == 1) return ::send(socket, from[0].iov_base, from[0].iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    msghdr message = message_of(from);
    return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  Address local_address(int socket) override {
    sockaddr_storage raw{};
    socklen_t size = sizeof raw;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&raw), &size);
    return {reinterpret_cast<const sockaddr*>(&raw), size};
  }
  Address remote_address(int socket) override {
    sockaddr_storage raw{};
    socklen_t size = sizeof raw;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&raw), &size) != 0) return {};
    return {reinterpret_cast<const sockaddr*>(&raw), size};
  }

  void own(int descriptor) override { OpenFiles::of_process().add(descriptor); }
  void close(int descriptor) noexcept override { OpenFiles::of_process().close(descriptor); }
};

}  // namespace

System& kernel() noexcept {
  static Kernel& machine = *new Kernel;  // never destroyed: descriptors may outlive every static object
  return machine;
}

}  // namespace syncopate::transport::socket
