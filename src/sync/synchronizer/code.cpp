// The coding thread: encodes buckets as they become ready and decodes those that have arrived, while others travel.
#include "sync/synchronizer/impl.hpp"
#include "syncopate/error.hpp"

namespace syncopate {

/// Where the step decides what leaves next, ranks agree before a bucket is known, so that nothing can be encoded ahead.
bool Synchronizer::Impl::is_encoded_ahead(const Progress& progress) const {
  return has_coding_thread_ && !progress.queue->need_agreement();
}

// Encoding comes first: the network waits for payloads, but nobody waits for a gradient before the last one.
void Synchronizer::Impl::code(const std::stop_token& stop) {
  const auto has_work = [&](const Progress& progress) {
    return !progress.arrived.empty() || (is_encoded_ahead(progress) && progress.queue->offer());
  };
  try {
    while (true) {
      std::optional<schedule::Bucket> leaving;
      std::optional<Underway> arrived;
      progress_.wait_until(
          base::kNever,
          [&](const Progress& progress) { return progress.failure || stop.stop_requested() || has_work(progress); },
          [&](Progress& progress) {
            if (progress.failure || stop.stop_requested()) return;
            if (const auto first = is_encoded_ahead(progress) ? progress.queue->offer() : std::nullopt) {
              leaving = progress.queue->take(*first);
              progress.taken.push_back(*leaving);
            } else {
              arrived = progress.arrived.front();
              progress.arrived.pop_front();
            }
          });
      if (leaving) {
        const Underway made = encoded(*leaving);
        progress_.change([&](Progress& progress) { progress.encoded.push_back(made); });
      } else if (arrived) {
        sync::decode(*arrived->bucket, context_);
        progress_.change([](Progress& progress) { ++progress.combined; });
      } else {
        return;
      }
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

Synchronizer::Impl::Underway Synchronizer::Impl::encoded(const schedule::Bucket& leaving) {
  const double begin_s = clock_s_() - step_begin_s_;
  sync::Bucket& bucket = buckets_.of(leaving);
  sync::encode(bucket, context_);
  return {&bucket, leaving, begin_s};
}

/// Aborts the group with this failure: the other ranks wait for this rank's part of a bucket and shall learn the cause.
/// If the group itself has failed, they know already, and its first report stays; and so does the first failure here.
void Synchronizer::Impl::fail(const std::exception_ptr& failure) noexcept {
  try {
    if (exchange_.name != "none") std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    group_.abort(error.what());
  } catch (...) {
    group_.abort("its communication failed");
  }
  progress_.change([&](Progress& progress) {
    if (!progress.failure) progress.failure = failure;
  });
}

}  // namespace syncopate
