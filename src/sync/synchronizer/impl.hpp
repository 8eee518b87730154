// Synchronizer::Impl: what the caller's threads and the communication thread share.
#pragma once

#include <deque>
#include <exception>
#include <optional>
#include <thread>

#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "sync/flow.hpp"
#include "sync/planning/bucket_queue.hpp"
#include "sync/planning/planner.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {

class Synchronizer::Impl final {
 public:
  Impl(Group& group, std::vector<Gradient> gradients, const SynchronizerOptions& options);
  /// Ends the threads: at once, except for an exchange in progress, if `abandoned`; else when nothing is left to do.
  void end(bool abandoned);
  /// Exceptions that were unwinding this thread when the synchronizer was made.
  [[nodiscard]] int exceptions() const noexcept { return exceptions_; }
  /// The process that created the synchronizer; a forked child has neither its threads nor its gradients' memory.
  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }

  void ready(std::size_t i);
  void wait();
  BucketInfo wait(std::size_t i);
  [[nodiscard]] std::optional<BucketInfo> next_bucket();
  void accumulate(bool on) {
    progress_.with([on](Progress& progress) { progress.accumulating = on; });
  }
  [[nodiscard]] const sync::Arena& arena() const noexcept { return flow_.arena; }
  [[nodiscard]] const std::vector<BucketInfo>& infos() const noexcept { return infos_; }
  [[nodiscard]] const StepStatistics& statistics() const noexcept { return statistics_; }
  [[nodiscard]] std::size_t count() const noexcept { return flow_.gradients.size(); }
  [[nodiscard]] SavedCodecState save() const { return flow_.save(); }
  [[nodiscard]] std::vector<SentShare> sent_shares() const;
  void discard_step() { flow_.state.undo(); }
  void restore(const SavedCodecState& saved) { flow_.restore(saved); }

 private:
  /// A bucket between two threads. It belongs to the one that takes it from a queue.
  struct Underway {
    sync::Bucket* bucket = nullptr;
    schedule::Bucket gradients;
    double begin_s = 0;  ///< when it was taken
    bool is_prepared = false;
  };

  /// Shared by the threads that report gradients, the thread that waits, and the two of the exchange.
  struct Progress {
    std::optional<sync::planning::BucketQueue> queue;
    std::vector<schedule::Bucket> taken;  ///< in this step, in the order in which they left
    std::deque<Underway> prepared;        ///< of `taken`: their payloads wait for the communication thread
    std::deque<Underway> arrived;         ///< of `taken`: their answers wait for the coding thread
    std::size_t combined = 0;             ///< how many of `taken` are combined, from the first on
    std::size_t delivered = 0;            ///< how many of `taken` have their final weights, from the last on
    std::size_t returned = 0;             ///< how many of `taken` `next_bucket` has returned
    sync::planning::StepRecord record;
    bool accumulating = false;
    bool abandoned = false;  ///< the synchronizer ends because of an exception
    std::exception_ptr failure;

    void begin_step(std::size_t gradients);
    /// The index in `taken` of the bucket with gradient i, if it has left.
    [[nodiscard]] std::optional<std::size_t> bucket_of(std::size_t i) const;
    /// Whether nothing is left to exchange until a further gradient is ready.
    [[nodiscard]] bool is_idle() const { return !queue->offer() && taken.size() == record.exchanges.size(); }
  };

  void begin_threads();

  // Run on the communication thread.
  void communicate(const std::stop_token& stop);
  [[nodiscard]] std::optional<Underway> next_to_leave(const std::stop_token& stop);
  [[nodiscard]] std::size_t agreed(std::size_t offer);
  void exchange(const Underway& leaving);
  void deliver_all();

  // Run on the coding thread.
  void code(const std::stop_token& stop);

  // Run on either.
  [[nodiscard]] Underway underway(const schedule::Bucket& leaving);
  [[nodiscard]] bool prepares_ahead(const Progress& progress) const;
  void fail(const std::exception_ptr& failure) noexcept;

  // Run on the caller's thread.
  void require_ready(std::size_t first, std::size_t last);
  void poll_callback();
  template <class Ready>
  void wait_for(const Ready& is_there);
  [[nodiscard]] bool is_here(const Progress& progress, std::size_t bucket) const;
  [[nodiscard]] bool is_complete(const Progress& progress) const;
  void finish_step(double waited_s);
  void review(sync::planning::Planner::Review review);
  void trace_plan();
  void set_partition();
  [[nodiscard]] BucketInfo info_of(const schedule::Bucket& bucket) const;

  sync::Flow flow_;
  const std::function<double()> clock_s_;
  sync::planning::Planner planner_;  ///< used by the caller's thread between steps
  sync::Buckets buckets_;            ///< used by the communication thread and the coding thread during a step
  std::vector<BucketInfo> infos_;
  StepStatistics statistics_;
  std::uint64_t sent_before_ = 0;
  std::uint64_t encoded_before_ = 0;
  double step_begin_s_ = 0;  ///< changes only between steps
  base::Guarded<Progress> progress_;
  const base::OwnProcess process_;
  const int exceptions_ = std::uncaught_exceptions();
  const bool has_coding_thread_;
  // `end` joins them before the other members are destroyed.
  std::jthread communication_;
  std::jthread coding_;  ///< encodes the next buckets and decodes the last ones, if `has_coding_thread_`
};

}  // namespace syncopate
