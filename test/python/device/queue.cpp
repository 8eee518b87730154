// The threads of the pretended accelerator's streams, and its events.
#include "queue.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>

namespace device {

void Queue::run() {
  at::set_num_threads(1);  // the bits of a sum depend on the number of threads
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    task = nullptr;
    std::lock_guard lock(mutex_);
    if (failure_ == nullptr) failure_ = failure;
    ++done_;
    changed_.notify_all();
  }
}

Queue& queue(int device, int64_t id) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<int, int64_t>, Queue*>;
  std::lock_guard lock(mutex);
  auto*& one = all[{device, id}];
  if (one == nullptr) one = new Queue(static_cast<unsigned>(device * (kStreams + 1) + id));
  return *one;
}

void Mark::record(Queue& on) {
  std::lock_guard lock(mutex_);
  on.put([self = shared_from_this(), version = ++recorded_] {
    std::lock_guard inner(self->mutex_);
    self->reached_ = std::max(self->reached_, version);
    self->time_ = Clock::now();
    self->changed_.notify_all();
  });
}

void Mark::wait(long version) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return reached_ >= version; });
}

long Mark::latest() {
  std::lock_guard lock(mutex_);
  return recorded_;
}

bool Mark::is_reached() {
  std::lock_guard lock(mutex_);
  return reached_ >= recorded_;
}

Mark::Clock::time_point Mark::time() {
  std::lock_guard lock(mutex_);
  return time_;
}

}  // namespace device
