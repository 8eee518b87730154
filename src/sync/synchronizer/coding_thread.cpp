// The coding thread: encodes buckets as they become ready and decodes those that have arrived, while others travel.
#include "sync/synchronizer/impl.hpp"

namespace syncopate {

/// Where the step decides what leaves next, ranks agree before a bucket is known, so that nothing can be encoded ahead.
bool Synchronizer::Impl::prepares_ahead(const Progress& progress) const {
  return has_coding_thread_ && !progress.queue->need_agreement();
}

// Encoding has priority: the network waits for payloads, and the caller waits for the last gradient only.
void Synchronizer::Impl::code(const std::stop_token& stop) {
  const auto is_over = [&](const Progress& progress) {
    return progress.failure || progress.abandoned || (stop.stop_requested() && !progress.queue->offer());
  };
  const auto has_work = [&](const Progress& progress) {
    return !progress.arrived.empty() || (prepares_ahead(progress) && progress.queue->offer());
  };
  try {
    while (true) {
      std::optional<schedule::Bucket> leaving;
      std::optional<Underway> arrived;
      progress_.wait_until(
          base::kNever, [&](const Progress& progress) { return is_over(progress) || has_work(progress); },
          [&](Progress& progress) {
            if (is_over(progress)) return;
            if (const auto first = prepares_ahead(progress) ? progress.queue->offer() : std::nullopt) {
              leaving = progress.queue->take(*first);
              progress.taken.push_back(*leaving);
            } else {
              arrived = progress.arrived.front();
              progress.arrived.pop_front();
            }
          });
      if (leaving) {
        Underway prepared = underway(*leaving);
        sync::prepare(*prepared.bucket, flow_.context);
        prepared.is_prepared = true;
        progress_.change([&](Progress& progress) { progress.prepared.push_back(prepared); });
      } else if (arrived) {
        sync::complete(*arrived->bucket, flow_.context);
        progress_.change([](Progress& progress) { ++progress.combined; });
      } else {
        return;
      }
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

}  // namespace syncopate
