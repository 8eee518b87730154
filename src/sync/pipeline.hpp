// The pipeline of a combiner: its threads take buckets through encoding, exchange and decoding, in order.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/guarded.hpp"
#include "sync/bucket.hpp"
#include "syncopate/combiner.hpp"

namespace syncopate::sync {

/// A bucket under way. It belongs to the thread that took it from a queue.
struct StartedBucket {
  std::vector<PlacedGradient> gradients;
  BucketCalls calls;
  Bucket* bucket = nullptr;
  CombinedBucket combined{};
};

/// Functions that the threads call without a lock. The first three may throw; a bucket that has an error skips them.
struct PipelineCalls {
  std::function<void(StartedBucket&)> encode;
  std::function<void(StartedBucket&)> exchange;
  std::function<void(StartedBucket&)> decode;
  std::function<void(StartedBucket&)> end;                ///< of every bucket, in order; it may throw
  std::function<void(const std::exception_ptr&)> failed;  ///< of the first error, at once; it does not throw
};

/// The coding thread encodes, decodes and ends buckets. A second thread exchanges them if the pipeline has one, and
/// else the coding thread does. After the last bucket of a step the next one is encoded when that one has ended. After
/// an error every bucket that has not ended ends with it.
class Pipeline final {
 public:
  Pipeline(PipelineCalls calls, bool has_exchanging_thread)
      : calls_(std::move(calls)), has_exchanging_thread_(has_exchanging_thread) {}
  /// Waits as `wait` does.
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// The first bucket begins the threads. Throws std::system_error if there can be none.
  void add(std::unique_ptr<StartedBucket> started);
  /// Returns when every bucket has ended, and what it was started with is destroyed; or, with false, at the deadline.
  bool wait(base::Time deadline);
  /// Whether this is one of its threads.
  [[nodiscard]] bool is_own_thread() const noexcept;

 private:
  using Queue = std::deque<std::unique_ptr<StartedBucket>>;
  struct Progress {
    Queue started, encoded, exchanged;
    std::size_t under_way = 0;    ///< started and not ended
    bool is_step_ending = false;  ///< the last bucket of a step has left `started` and has not ended
    bool is_over = false;
    std::exception_ptr failure;  ///< the first one

    [[nodiscard]] bool has_next() const { return !started.empty() && !is_step_ending; }
    [[nodiscard]] bool is_done() const { return is_over && under_way == 0; }
  };

  void begin_threads();
  void code();
  void exchange();
  void finish(std::unique_ptr<StartedBucket> bucket);
  void carry_out(const std::function<void(StartedBucket&)>& phase, StartedBucket& bucket);
  /// The first error, which this one may be.
  std::exception_ptr note(const std::exception_ptr& error);

  const PipelineCalls calls_;
  const bool has_exchanging_thread_;
  base::Guarded<Progress> progress_;
  // Begun by the caller's thread. The destructor joins them before the other members are destroyed.
  std::jthread exchanging_;
  std::jthread coding_;
};

}  // namespace syncopate::sync
