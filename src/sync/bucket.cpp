// Buckets: made when a run of gradients first leaves together, and kept for the next time.
#include "sync/bucket.hpp"

#include "sync/weight_updater.hpp"

namespace syncopate::sync {

namespace {
constexpr std::size_t kKeptPerGradient = 4;  // a coder may own memory of its bucket's size
}

std::string Buckets::name_of(const schedule::Bucket& run) const {
  const std::string& first = gradients_[run.first].name;
  return run.first == run.last ? first : first + " .. " + gradients_[run.last].name;
}

Bucket& Buckets::of(const schedule::Bucket& run) {
  const auto found = buckets_.find({run.first, run.last});
  if (found != buckets_.end()) return found->second;
  const Buffer span = arena_.span(run.first, run.last);
  Bucket bucket{.name = name_of(run),
                .gradient = span,
                .coder = codec_.coder(span),
                .weights = updater_.weights_of(run.first, run.last),
                .first = run.first,
                .last = run.last};
  return buckets_.emplace(std::pair(run.first, run.last), std::move(bucket)).first->second;
}

void Buckets::limit() {
  if (buckets_.size() > kKeptPerGradient * gradients_.size()) buckets_.clear();
}

}  // namespace syncopate::sync
