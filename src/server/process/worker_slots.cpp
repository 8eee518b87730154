// The workers of a server: the state of their streams.
#include "server/process/worker_slots.hpp"

#include <algorithm>
#include <iterator>

namespace syncopate::server {

std::optional<std::uint64_t> WorkerSlots::occupy(std::size_t worker, std::shared_ptr<streams::Stream> stream,
                                                 std::uint64_t process) {
  const base::Lock lock(mutex_);
  WorkerSlot& slot = slots_[worker];
  if (slot.stream && slot.process != process) return std::nullopt;
  if (slot.stream) {
    slot.stream->close("the worker has opened another stream");
    retired_.push_back(std::move(slot.stream));
  }
  slot.stream = std::move(stream);
  slot.process = process;
  slot.is_given_up = slot.has_finished = slot.was_extended = false;
  slot.first.reset();
  changed_.notify_all();
  return ++slot.life;
}

void WorkerSlots::expect(std::size_t worker, int change) {
  const base::Lock lock(mutex_);
  WorkerSlot& slot = slots_[worker];
  slot.expected += change;
  if (slot.stream) return;
  const bool begins = change > 0 && !std::exchange(slot.was_extended, true);
  if (begins || (slot.life == 0 && slot.expected == 0)) slot.away_since = clock_->now();
}

bool WorkerSlots::admit(std::size_t worker, std::uint64_t life, WorkerMessage& message) {
  const base::Lock lock(mutex_);
  WorkerSlot& slot = slots_[worker];
  if (slot.life != life) return false;
  received_bytes_ += body_bytes(message);
  if (!is_open_) slot.first = std::move(message);
  return is_open_;
}

std::vector<std::pair<std::size_t, WorkerMessage>> WorkerSlots::open() {
  const base::Lock lock(mutex_);
  is_open_ = true;
  std::vector<std::pair<std::size_t, WorkerMessage>> kept;
  for (auto& [worker, slot] : slots_)
    if (auto first = std::exchange(slot.first, std::nullopt)) kept.emplace_back(worker, std::move(*first));
  return kept;
}

void WorkerSlots::send(Outgoing outgoing) {
  std::shared_ptr<streams::Stream> stream;
  {
    const base::Lock lock(mutex_);
    const auto slot = slots_.find(outgoing.worker);
    if (slot == slots_.end() || !slot->second.stream) return;
    stream = slot->second.stream;
    sent_bytes_ += body_bytes(outgoing.message);
  }
  server::send(*stream, outgoing.priority, outgoing.message);
}

std::uint64_t WorkerSlots::life_of(std::size_t worker) const {
  const base::Lock lock(mutex_);
  const auto slot = slots_.find(worker);
  return slot == slots_.end() ? 0 : slot->second.life;
}

void WorkerSlots::turn_away(std::size_t worker, std::uint64_t life, const Refuse& refusal) {
  const base::Lock lock(mutex_);
  if (WorkerSlot& slot = slots_[worker]; slot.life == life && slot.stream) turn_away(slot, refusal);
}

void WorkerSlots::turn_all_away(const Refuse& refusal) {
  const base::Lock lock(mutex_);
  for (auto& [worker, slot] : slots_)
    if (slot.stream) turn_away(slot, refusal);
}

void WorkerSlots::turn_away(WorkerSlot& slot, const Refuse& refusal) {
  ++slot.life;
  server::send(*slot.stream, 0, ServerMessage(refusal));
  slot.stream->close({});
  retired_.push_back(std::move(slot.stream));
  slot.away_since = clock_->now();
  changed_.notify_all();
}

void WorkerSlots::mark_finished(std::size_t worker) {
  const base::Lock lock(mutex_);
  slots_[worker].has_finished = true;
  changed_.notify_all();
}

void WorkerSlots::give_up(std::size_t worker) {
  const base::Lock lock(mutex_);
  WorkerSlot& slot = slots_[worker];
  slot.is_given_up = !slot.stream;
  changed_.notify_all();
}

bool WorkerSlots::lose(std::size_t worker, std::uint64_t life) {
  const base::Lock lock(mutex_);
  WorkerSlot& slot = slots_[worker];
  if (slot.life != life) return false;
  retired_.push_back(std::move(slot.stream));
  slot.away_since = clock_->now();
  changed_.notify_all();
  return !slot.has_finished;
}

void WorkerSlots::retire(std::shared_ptr<streams::Stream> stream) {
  const base::Lock lock(mutex_);
  retired_.push_back(std::move(stream));
}

WorkerSlots::Due WorkerSlots::due(std::size_t workers) {
  std::vector<std::shared_ptr<streams::Stream>> retired;
  base::Lock lock(mutex_);
  retired.swap(retired_);
  Due due = overdue(workers);
  lock.unlock();
  for (const auto& stream : retired) stream->end();
  return due;
}

WorkerSlots::Due WorkerSlots::overdue(std::size_t workers) {
  Due due;
  if (workers == 0) return due;
  const base::Time now = clock_->now();
  if (!began_) began_ = now;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    WorkerSlot& slot = slots_[worker];
    const bool begins = slot.life == 0 && slot.expected > 0;  // a process that never had the slot
    if (slot.stream || begins || slot.is_given_up || slot.has_finished) continue;
    const base::Time deadline = std::max(slot.away_since, *began_) + patience_;
    slot.is_given_up = deadline <= now;
    if (slot.is_given_up)
      due.given_up.push_back(worker);
    else
      due.next = std::min(due.next, deadline);
  }
  if (!due.given_up.empty()) changed_.notify_all();
  return due;
}

void WorkerSlots::fail(std::exception_ptr failure) {
  const base::Lock lock(mutex_);
  failure_ = std::move(failure);
  changed_.notify_all();
}

bool WorkerSlots::wait_for_end(std::chrono::milliseconds time, const std::function<std::size_t()>& workers) {
  const base::Time deadline = clock_->now() + time;
  base::Lock lock(mutex_);
  while (!failure_ && !have_all_ended(workers()) && clock_->now() < deadline && changed_.wait_until(lock, deadline))
    continue;
  if (failure_) std::rethrow_exception(failure_);
  return have_all_ended(workers());
}

/// Slots beyond the job belong to processes that are refused, or have not sent their setup.
bool WorkerSlots::have_all_ended(std::size_t workers) const {
  const auto beyond = slots_.lower_bound(workers);
  return workers > 0 && static_cast<std::size_t>(std::distance(slots_.begin(), beyond)) == workers &&
         std::all_of(slots_.begin(), beyond,
                     [](const auto& entry) { return entry.second.has_finished || entry.second.is_given_up; });
}

void WorkerSlots::count(ServerStatus& status) const {
  const base::Lock lock(mutex_);
  status.received_bytes = received_bytes_;
  status.sent_bytes = sent_bytes_;
  status.serves = is_open_;
  for (const auto& [worker, slot] : slots_) {
    status.connected += slot.stream || slot.expected > 0 ? 1 : 0;
    status.finished += slot.has_finished ? 1 : 0;
  }
}

}  // namespace syncopate::server
