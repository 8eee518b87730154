// The keeper of a replica: claims, records, acknowledgements, and handing over.
#include "server/process/replica_keeper.hpp"

#include <fmt/format.h>

#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::server {

ReplicaKeeper::ReplicaKeeper(std::size_t server, std::size_t memory_bytes, syncopate::Log log)
    : server_(server), memory_bytes_(memory_bytes), log_(std::move(log)), reader_(memory_bytes) {
  forget();
}

void ReplicaKeeper::forget() {
  tables_ = std::make_unique<ServerTables>(server_, memory_bytes_, [](auto&&...) {});
  has_ = 0;
}

rpc::StreamEvents ReplicaKeeper::accept(std::unique_ptr<rpc::Stream> stream) {
  const std::lock_guard lock(mutex_);
  if (stream_) {
    stream_->close("the server has opened another stream");
    retired_.push_back(std::move(stream_));
  }
  stream_ = std::move(stream);
  is_claimed_ = is_due_ = false;
  reader_ = RecordReader(memory_bytes_);
  const std::uint64_t life = ++life_;
  return {.received = [this, life](Payload bytes) { receive(life, std::move(bytes)); },
          .ended = [this, life](const rpc::Ending& ending) { lose(life, ending); }};
}

/// Runs on: gRPC's threads. A replica that cannot follow its owner is useless; the next claim is answered with 0.
void ReplicaKeeper::receive(std::uint64_t life, Payload bytes) {
  const std::lock_guard lock(mutex_);
  if (life != life_) return;
  try {
    Relayed relayed = relayed_of(std::move(bytes));
    const bool is_empty = relayed.tells == Tells::claim_empty;
    if (!is_claimed_ && (is_empty || relayed.tells == Tells::claim)) return take_claim(relayed.number, is_empty);
    if (relayed.tells != Tells::record || !is_claimed_ || is_due_) throw Corrupt("unexpected message from a server");
    Record record;
    if (!reader_.take(std::move(relayed), record)) return;
    has_ = tables_->apply(record);
    if (has_ > 0) tell(Tells::holds, has_);
  } catch (...) {
    if (is_claimed_) forget();
    throw;
  }
}

void ReplicaKeeper::take_claim(std::uint64_t process, bool is_empty) {
  const bool is_owner = owner_ == process || owner_ == 0;
  if (!is_empty && !is_owner) {
    log_.write(LogLevel::warning, fmt::format("refused a process that server {} has replaced", server_));
    tell(Tells::replaced, 0);
    return stream_->close({});
  }
  owner_ = process;
  is_claimed_ = true;
  is_due_ = is_empty && has_ > 0;
  if (is_due_) return;  // `turn` handles it
  tell(Tells::holds, has_);
}

void ReplicaKeeper::tell(Tells tells, std::uint64_t number) const {
  stream_->send(0, head_of(Relayed{.tells = tells, .number = number}), {});
}

void ReplicaKeeper::lose(std::uint64_t life, const rpc::Ending& ending) {
  const std::lock_guard lock(mutex_);
  if (life != life_) return;
  if (ending.failure)
    log_.write(LogLevel::warning, fmt::format("server {}, whose replica is here, is lost: {}", server_, ending.reason));
  ++life_;
  retired_.push_back(std::exchange(stream_, nullptr));
  is_claimed_ = is_due_ = false;
}

void ReplicaKeeper::turn() {
  std::vector<std::shared_ptr<rpc::Stream>> retired;
  {
    const std::lock_guard lock(mutex_);
    retired.swap(retired_);
    if (std::exchange(is_due_, false)) hand_over();
  }
  for (const auto& stream : retired) stream->end();
}

void ReplicaKeeper::hand_over() const {
  log_.write(LogLevel::warning, fmt::format("server {} restores its tables from their replica here", server_));
  const auto send = [this](Relayed part) { stream_->send(0, head_of(part), std::move(part.message.body)); };
  static_cast<void>(tables_->hand_over([&](const Record& record) { each_part(record, send); }));
  tell(Tells::holds, has_);
}

void ReplicaKeeper::end() {
  std::shared_ptr<rpc::Stream> stream;
  {
    const std::lock_guard lock(mutex_);
    ++life_;
    stream.swap(stream_);
  }
  if (!stream) return;
  stream->close({});
  stream->end();
}

void ReplicaKeeper::count(ServerStatus& status) const {
  const std::lock_guard lock(mutex_);
  status.replica_bytes = tables_->kept_bytes();
  status.keeps_replica = has_ > 0;
}

}  // namespace syncopate::server
