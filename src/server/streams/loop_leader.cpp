// LoopLeader: the loop passes from its thread to callers and back.
#include "server/streams/loop_leader.hpp"

#include <fmt/format.h>

#include <utility>

namespace syncopate::server::streams {

namespace {

/// Longer than a caller takes between two small updates; arrived bytes wait for that long at most.
constexpr base::Duration kRest = std::chrono::milliseconds(1);
/// Larger messages take longer than a wake-up, and polling would read them in small pieces.
constexpr std::size_t kWorthPolling = std::size_t{16} << 10;

base::Time now() { return base::SteadyClock().now(); }

}  // namespace

LoopLeader::LoopLeader(EndOptions options, Accepted accepted)
    : spin_(options.spin),
      log_(options.log),
      loop_(std::move(options), std::move(accepted), transport::socket::kernel(), [this] { wake(); }) {}

void LoopLeader::serve(const std::stop_token& stop) {
  for (;;) {
    {
      base::Lock lock(mutex_);
      while (!stop.stop_requested() && (is_taken_ || callers_ > 0 || now() < rest_until_)) {
        is_awaited_ = is_taken_ || callers_ > 0;
        due_.wait_until(lock, is_awaited_ ? base::kNever : rest_until_);
      }
      is_awaited_ = false;
      is_taken_ = true;
    }
    if (stop.stop_requested()) return;
    turn(base::kNever);
    const base::Lock lock(mutex_);
    is_taken_ = false;
    if (callers_ > 0) free_.notify_all();  // one of them takes the loop, and any may have a message
  }
}

bool LoopLeader::wait(base::Time deadline, const std::function<bool()>& is_over) {
  bool has_run = false, is_done = false;
  {
    base::Lock lock(mutex_);
    ++callers_;
    if (is_taken_) loop_.poller().wake();  // the thread passes the loop on after its turn
    while (!(is_done = is_over()) && is_taken_ && free_.wait_until(lock, deadline)) continue;
    if (!is_done && !is_taken_) {
      has_run = true;
      is_taken_ = true;
      awake_until_ = now() + spin_;
      do {
        lock.unlock();
        turn(deadline);
        lock.lock();
        if (callers_ > 1) free_.notify_all();  // the message may be another caller's
      } while (!(is_done = is_over()) && now() < deadline);
      is_taken_ = false;
      rest_until_ = now() + kRest;
    }
    --callers_;
    if (callers_ > 0) free_.notify_one();
    if (callers_ == 0 && is_awaited_) due_.notify_one();
  }
  if (has_run && loop_.has_work()) wake();  // noted since the last turn, when a wake-up went to this caller
  return is_done;
}

void LoopLeader::wake() {
  const base::Lock lock(mutex_);
  loop_.poller().wake();  // even if no thread runs the loop: then its next turn does not sleep
  if (!is_taken_) {
    rest_until_ = {};
    due_.notify_one();
  }
  if (callers_ > 0) free_.notify_all();
}

/// Called without `mutex_`, which `wake` takes while the loop's own locks are held.
void LoopLeader::turn(base::Time deadline) {
  const base::Time at = now();
  const bool is_awake = at < awake_until_ && backoff_.may_stay_awake(at);
  std::size_t bytes = 0;
  loop_.adopt();
  try {
    bytes = loop_.turn(is_awake ? at : deadline);
  } catch (const std::exception& error) {  // the system lacks memory or descriptors: streams that need none go on
    log_.write(LogLevel::warning, fmt::format("a stream could not be served: {}", error.what()));
  }
  loop_.disown();
  if (bytes > 0)
    awake_until_ = bytes <= kWorthPolling ? now() + spin_ : base::Time{};
  else if (is_awake)
    backoff_.yield(at);
}

}  // namespace syncopate::server::streams
