// Descriptor: an open file that closes itself, also in a child that is forked without exec.
#include "transport/socket/descriptor.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace syncopate::transport::socket {

namespace {

/// All that this process has open. It is locked while the process forks, so that the child finds it whole.
class OpenFiles final {
 public:
  static OpenFiles& of_process() {
    static OpenFiles& files = *new OpenFiles;  // never destroyed: descriptors may outlive every static object
    return files;
  }
  void add(int number) {
    const std::lock_guard lock(mutex_);
    numbers_.insert(number);
  }
  void close(int number) noexcept {
    const std::lock_guard lock(mutex_);
    numbers_.erase(number);
    ::close(number);
  }

 private:
  OpenFiles() {
    ::pthread_atfork([] { of_process().mutex_.lock(); }, [] { of_process().mutex_.unlock(); },
                     [] { of_process().close_in_child(); });
  }
  void close_in_child() noexcept {
    for (const int number : numbers_) ::close(number);
    numbers_.clear();
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::set<int> numbers_;
};

}  // namespace

Descriptor::Descriptor(int number) try : number_(number) {
  if (number >= 0) OpenFiles::of_process().add(number);
} catch (...) {
  ::close(number);
  throw;
}

Descriptor::~Descriptor() {
  if (number_ >= 0 && !process_.is_inherited()) OpenFiles::of_process().close(number_);
}

}  // namespace syncopate::transport::socket
