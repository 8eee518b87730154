// The log of a server: sequence numbers, records that are sent again after a broken stream, and held answers.
#include "server/replication/log.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::server {

/// A transfer begins with its setup: without it the replica could not interpret a record.
void Log::append(Record record) {
  if (!forward_) return;
  const base::Lock lock(mutex_);
  record.sequence = ++made_;
  if (std::holds_alternative<change::SetUp>(record.change) && replica_ == Reach::waiting) replica_ = Reach::following;
  if (replica_ == Reach::following) forward_(record);
  if (!is_transferred(record.change)) kept_.push_back(std::move(record));
}

void Log::send(Outgoing outgoing) {
  if (!forward_) return send_(std::move(outgoing));
  const base::Lock lock(mutex_);
  if (acknowledged_ == made_) return send_(std::move(outgoing));
  held_.push_back({made_, std::move(outgoing)});
}

void Log::forget(std::size_t worker) {
  const base::Lock lock(mutex_);
  std::erase_if(held_, [&](const Held& held) { return held.outgoing.worker == worker; });
}

void Log::acknowledge(std::uint64_t sequence) {
  const base::Lock lock(mutex_);
  release(std::min(sequence, made_));
}

void Log::release(std::uint64_t sequence) {
  acknowledged_ = std::max(acknowledged_, sequence);
  while (!kept_.empty() && kept_.front().sequence <= acknowledged_) kept_.pop_front();
  for (; !held_.empty() && held_.front().needs <= acknowledged_; held_.pop_front())
    send_(std::move(held_.front().outgoing));
}

void Log::pause() {
  const base::Lock lock(mutex_);
  replica_ = Reach::away;
}

bool Log::resume(std::uint64_t sequence) {
  const base::Lock lock(mutex_);
  replica_ = Reach::waiting;
  if (sequence < acknowledged_ || sequence > made_ || sequence == 0) return false;
  replica_ = Reach::following;
  release(sequence);
  for (const Record& record : kept_) forward_(record);
  return true;
}

bool Log::awaits_transfer() const {
  const base::Lock lock(mutex_);
  return replica_ == Reach::waiting;
}

std::uint64_t Log::sequence() const {
  const base::Lock lock(mutex_);
  return made_;
}

void Log::continue_from(std::uint64_t sequence) {
  const base::Lock lock(mutex_);
  made_ = acknowledged_ = std::max(made_, sequence);
}

}  // namespace syncopate::server
