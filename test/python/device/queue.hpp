// Streams and events of the pretended accelerator: a stream is a thread with tasks in their order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace device {

inline constexpr int kDevices = 2;
inline constexpr int64_t kStreams = 32;  // of each device next to the default stream, which is 0

// Settings of a test, and counters.
struct Settings {
  std::atomic<int> operator_us{0},
      copy_us{0};                           // the longest delay of an operator, and of a copy between host and device
  std::atomic<unsigned> seed{0};            // of the delays
  std::atomic<double> copy_bytes_per_s{0};  // of a copy between host and device after its delay; 0: no limit
  std::atomic<long> operators{0}, copies{0}, host_waits{0};
};
inline Settings settings;

// A stream. A task's exception is raised by the next call that waits for the stream, as an accelerator's is.
class Queue {
 public:
  using Task = std::function<void()>;

  explicit Queue(unsigned number) : number_(number), thread_([this] { run(); }) {}

  void put(Task task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++put_;
    changed_.notify_all();
  }
  // Returns when the tasks that were put until now have ended.
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, until = put_] { return done_ >= until; });
  }
  // Waits, and throws the exception of a task.
  void drain() {
    await();
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }
  bool idle() {
    std::lock_guard lock(mutex_);
    return done_ == put_;
  }
  // Sleeps for a drawn share of this time; a task of this queue calls it.
  void delay(int longest_us) {
    if (seed_ != settings.seed) random_.seed(number_ + 1000003U * (seed_ = settings.seed));
    if (longest_us == 0) return;
    const auto drawn = std::uniform_int_distribution<int>(longest_us / 2, longest_us)(random_);
    std::this_thread::sleep_for(std::chrono::microseconds(drawn));
  }
  // Sleeps for the delay and the time of a copy of these bytes.
  void delay_copy(size_t bytes) {
    delay(settings.copy_us);
    const double rate = settings.copy_bytes_per_s;
    if (rate > 0) std::this_thread::sleep_for(std::chrono::duration<double>(static_cast<double>(bytes) / rate));
  }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  long put_ = 0, done_ = 0;
  std::exception_ptr failure_;
  const unsigned number_;
  unsigned seed_ = 0;
  std::mt19937 random_{number_};
  std::thread thread_;  // the last member: it uses the others
};

// The stream `id` of a device; it lives as long as the process.
Queue& queue(int device, int64_t id);

// An event: how often it was recorded, and the last record that its stream has reached.
class Mark : public std::enable_shared_from_this<Mark> {
 public:
  using Clock = std::chrono::steady_clock;

  void record(Queue& on);
  // Returns when the stream has reached that record.
  void wait(long version);
  long latest();
  bool is_reached();
  Clock::time_point time();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  long recorded_ = 0, reached_ = 0;
  Clock::time_point time_;
};

// The device and the streams of the calling thread.
inline thread_local int current_device = 0;
inline thread_local int64_t current_stream[kDevices] = {};

inline Queue& current_queue(int device) { return queue(device, current_stream[device]); }

}  // namespace device
