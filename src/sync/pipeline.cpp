// The pipeline's two threads, and the buckets between them.
#include "sync/pipeline.hpp"

#include <utility>

namespace syncopate::sync {

namespace {

thread_local const Pipeline* pipeline_of_thread = nullptr;

template <class Queue>
auto taken_from(Queue& queue) {
  auto first = std::move(queue.front());
  queue.pop_front();
  return first;
}

}  // namespace

Pipeline::~Pipeline() {
  progress_.change([](Progress& progress) { progress.is_over = true; });
}

void Pipeline::add(std::unique_ptr<StartedBucket> started) {
  begin_threads();
  progress_.change([&](Progress& progress) {
    progress.started.push_back(std::move(started));
    ++progress.under_way;
  });
}

void Pipeline::begin_threads() {
  if (has_exchanging_thread_ && !exchanging_.joinable()) exchanging_ = std::jthread([this] { exchange(); });
  if (!coding_.joinable()) coding_ = std::jthread([this] { code(); });
}

bool Pipeline::wait(base::Time deadline) {
  return progress_.wait_until(
      deadline, [](const Progress& progress) { return progress.under_way == 0; }, [](const Progress&) {});
}

bool Pipeline::is_own_thread() const noexcept { return pipeline_of_thread == this; }

// Encoding has priority: the network waits for payloads, and a caller that needs all averages for the last one only.
void Pipeline::code() {
  pipeline_of_thread = this;
  while (true) {
    std::unique_ptr<StartedBucket> next, exchanged;
    progress_.wait_until(
        base::kNever,
        [](const Progress& progress) {
          return progress.has_next() || !progress.exchanged.empty() || progress.is_done();
        },
        [&](Progress& progress) {
          if (progress.has_next()) {
            next = taken_from(progress.started);
            progress.is_step_ending = next->calls.ends_step;
          } else if (!progress.exchanged.empty()) {
            exchanged = taken_from(progress.exchanged);
          }
        });
    if (next) {
      carry_out(calls_.encode, *next);
      if (has_exchanging_thread_) {
        progress_.change([&](Progress& progress) { progress.encoded.push_back(std::move(next)); });
      } else {
        carry_out(calls_.exchange, *next);
        finish(std::move(next));
      }
    } else if (exchanged) {
      finish(std::move(exchanged));
    } else {
      return;
    }
  }
}

void Pipeline::exchange() {
  pipeline_of_thread = this;
  while (true) {
    std::unique_ptr<StartedBucket> bucket;
    progress_.wait_until(
        base::kNever, [](const Progress& progress) { return !progress.encoded.empty() || progress.is_done(); },
        [&](Progress& progress) {
          if (!progress.encoded.empty()) bucket = taken_from(progress.encoded);
        });
    if (!bucket) return;
    carry_out(calls_.exchange, *bucket);
    progress_.change([&](Progress& progress) { progress.exchanged.push_back(std::move(bucket)); });
  }
}

void Pipeline::finish(std::unique_ptr<StartedBucket> bucket) {
  carry_out(calls_.decode, *bucket);
  const bool ends_step = bucket->calls.ends_step;
  try {
    calls_.end(*bucket);
  } catch (...) {
    note(std::current_exception());
  }
  bucket.reset();
  progress_.change([&](Progress& progress) {
    if (ends_step) progress.is_step_ending = false;
    --progress.under_way;
  });
}

void Pipeline::carry_out(const std::function<void(StartedBucket&)>& phase, StartedBucket& bucket) {
  std::exception_ptr& error = bucket.combined.error;
  if (!error) error = progress_.with([](const Progress& progress) { return progress.failure; });
  if (error) return;
  try {
    phase(bucket);
  } catch (...) {
    error = note(std::current_exception());
  }
}

std::exception_ptr Pipeline::note(const std::exception_ptr& error) {
  const auto [is_first, first] = progress_.with([&](Progress& progress) {
    const bool was_unset = !progress.failure;
    if (was_unset) progress.failure = error;
    return std::pair(was_unset, progress.failure);
  });
  if (is_first) calls_.failed(error);
  return first;
}

}  // namespace syncopate::sync
