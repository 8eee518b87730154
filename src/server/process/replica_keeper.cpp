// The keeper of a replica: claims, records, acknowledgements, and handing over.
#include "server/process/replica_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::server {

ReplicaKeeper::ReplicaKeeper(std::size_t server, std::size_t memory_bytes, base::Duration bound, syncopate::Log log,
                             std::function<void()> due, const Catalogue& catalogue,
                             std::shared_ptr<const base::Clock> clock)
    : server_(server),
      memory_bytes_(memory_bytes),
      bound_(bound),
      log_(std::move(log)),
      due_(std::move(due)),
      catalogue_(catalogue),
      clock_(std::move(clock)),
      reader_(memory_bytes) {
  forget();
}

void ReplicaKeeper::forget() {
  tables_ = std::make_shared<ServerTables>(
      server_, memory_bytes_, [](auto&&...) {}, nullptr, catalogue_);
  has_ = 0;
}

streams::StreamEvents ReplicaKeeper::accept(std::unique_ptr<streams::Stream> stream) {
  const base::Lock lock(mutex_);
  const std::uint64_t life = ++lives_;
  claimants_[life].stream = std::move(stream);
  return {.received = [this, life](Payload bytes) { receive(life, std::move(bytes)); },
          .ended = [this, life](const streams::Ending& ending) { lose(life, ending); }};
}

/// Runs on: the streams' thread.
void ReplicaKeeper::receive(std::uint64_t life, Payload bytes) {
  const base::Lock lock(mutex_);
  const auto claimant = claimants_.find(life);
  if (claimant != claimants_.end()) return receive_claim(life, claimant->second, relay_message_of(std::move(bytes)));
  if (life != life_) return;
  try {
    receive_record(relay_message_of(std::move(bytes)));
  } catch (...) {
    forget();  // a replica that cannot follow its owner is useless; the next claim is answered with 0
    throw;
  }
}

void ReplicaKeeper::receive_record(RelayMessage message) {
  auto* const part = std::get_if<RecordPart>(&message);
  if (part == nullptr || is_due_) throw Corrupt("unexpected message from a server");
  Record record;
  if (!reader_.add(std::move(*part), record)) return;
  has_ = tables_->apply(record);
  if (has_ == 0) return;
  is_blank_ = false;
  tell_kept();
}

/// A process that comes back replaces its own stream. One with tables precedes an owner that never had any.
void ReplicaKeeper::receive_claim(std::uint64_t life, Claimant& claimant, const RelayMessage& message) {
  const auto* const claim = std::get_if<Claim>(&message);
  if (claim == nullptr || claimant.process != 0) throw Corrupt("unexpected message from a server");
  claimant.process = claim->process;
  claimant.is_empty = claim->is_empty;
  const bool is_owner = owner_ == 0 || owner_ == claimant.process;
  if (!is_owner && !claimant.is_empty && !is_blank_) return refuse(claimant, {.was_replaced = true});
  claimant.is_waiting = !is_owner && claimant.is_empty && stream_;
  claimant.deadline = clock_->now() + bound_;
  if (!claimant.is_waiting) admit(life, claimants_.extract(life).mapped());
  due_();
}

void ReplicaKeeper::admit(std::uint64_t life, Claimant claimant) {
  if (stream_) {
    stream_->close("the server has opened another stream");
    retired_.push_back(std::move(stream_));
  }
  stream_ = std::move(claimant.stream);
  life_ = life;
  reader_ = RecordReader(memory_bytes_);
  if (owner_ != claimant.process) is_blank_ = claimant.is_empty && has_ == 0;
  owner_ = claimant.process;
  is_due_ = claimant.is_empty && has_ > 0;  // `turn` handles it
  if (!is_due_) tell_kept();
}

/// It stays a claimant until its stream has ended.
void ReplicaKeeper::refuse(Claimant& claimant, const Denied& why) {
  log_.write(LogLevel::warning, fmt::format("refused a process that claims to be server {}: {}", server_,
                                            why.was_replaced ? "another one has replaced it" : "another one is alive"));
  claimant.is_waiting = false;
  send(*claimant.stream, 0, RelayMessage(why));
  claimant.stream->close({});
}

base::Time ReplicaKeeper::consider_waiting() {
  const base::Time now = clock_->now();
  base::Time next = base::kNever;
  for (auto at = claimants_.begin(); at != claimants_.end();) {
    const auto claimant = at++;
    if (!claimant->second.is_waiting) continue;
    if (!stream_) {
      const std::uint64_t life = claimant->first;
      admit(life, claimants_.extract(claimant).mapped());
    } else if (claimant->second.deadline <= now) {
      refuse(claimant->second, {.was_replaced = false});
    } else {
      next = std::min(next, claimant->second.deadline);
    }
  }
  return next;
}

void ReplicaKeeper::tell_kept() const { send(*stream_, 0, RelayMessage(Holds{has_})); }

void ReplicaKeeper::lose(std::uint64_t life, const streams::Ending& ending) {
  const base::Lock lock(mutex_);
  due_();
  if (auto claimant = claimants_.extract(life)) return retired_.push_back(std::move(claimant.mapped().stream));
  if (life != life_) return;
  if (ending.failure)
    log_.write(LogLevel::warning, fmt::format("server {}, whose replica is here, is lost: {}", server_, ending.reason));
  life_ = 0;
  retired_.push_back(std::exchange(stream_, nullptr));
  is_due_ = false;
}

base::Time ReplicaKeeper::turn() {
  std::vector<std::shared_ptr<streams::Stream>> retired;
  base::Time next = base::kNever;
  {
    const base::Lock lock(mutex_);
    next = consider_waiting();
    retired.swap(retired_);
  }
  hand_over();
  for (const auto& stream : retired) stream->end();
  return next;
}

/// Sends without the lock, which `count` and the callbacks need: the images of gigabytes take long. The tables do not
/// change meanwhile, because records are refused while `is_due_`. A stream that has ended meanwhile drops the rest, and
/// a later one is due itself. After an error `is_due_` remains: the successor, which has a part, never serves.
void ReplicaKeeper::hand_over() {
  base::Lock lock(mutex_);
  if (!is_due_) return;
  const std::uint64_t life = life_;
  const auto stream = stream_;
  const auto tables = tables_;
  lock.unlock();
  try {
    log_.write(LogLevel::warning, fmt::format("server {} restores its tables from their replica here", server_));
    const auto send_part = [&](const RecordPart& part) { send(*stream, 0, RelayMessage(part)); };
    static_cast<void>(tables->hand_over([&](const Record& record) { each_part(record, send_part); }));
  } catch (const std::exception& error) {
    throw SystemFailure(fmt::format(
        "server {} cannot restore its tables from their replica here: {}; restart all servers, then the workers",
        server_, error.what()));
  }
  lock.lock();
  if (life != life_) return;
  is_due_ = false;
  tell_kept();
}

void ReplicaKeeper::end() {
  std::vector<std::shared_ptr<streams::Stream>> streams;
  {
    const base::Lock lock(mutex_);
    life_ = 0;
    if (stream_) streams.push_back(std::exchange(stream_, nullptr));
    for (auto& [life, claimant] : std::exchange(claimants_, {})) streams.push_back(std::move(claimant.stream));
  }
  for (const auto& stream : streams) stream->close({});
  for (const auto& stream : streams) stream->end();
}

void ReplicaKeeper::count(ServerStatus& status) const {
  const base::Lock lock(mutex_);
  status.replica_bytes = tables_->kept_bytes();
  status.keeps_replica = has_ > 0;
}

}  // namespace syncopate::server
