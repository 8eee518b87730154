// A parameter server's decisions: workers that come and go, the previous server's replica, and its own.
#include "server/process/server_shell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/job/setup.hpp"
#include "server/process/status.hpp"

namespace syncopate::server {

namespace {

using Role = streams::Identity::Role;

Refuse refusal_of(const Error& error) { return {error.kind(), payload_of(error.what())}; }

}  // namespace

ServerShell::ServerShell(Options options, ReplicaLink::Dialler dial, std::function<void()> ask,
                         const std::shared_ptr<const base::Clock>& clock)
    : options_(std::move(options)),
      ask_(std::move(ask)),
      tables_(
          options_.index, options_.memory_bytes, [this](Outgoing outgoing) { slots_.send(std::move(outgoing)); },
          to_replica(), options_.catalogue, clock),
      slots_(options_.patience, clock),
      candidates_(slots_, options_.losing, clock) {
  if (!has_replica()) return;
  replica_keeper_.emplace(server_before(), options_.memory_bytes, options_.losing, options_.log, ask_,
                          options_.catalogue, clock);
  replica_link_.emplace(std::move(dial), ReplicaLink::Ends{options_.index, options_.keeper_address, options_.process},
                        options_.log, clock, tables_,
                        ReplicaLink::Events{.joined = [this] { open(); },
                                            .failed = [this](std::exception_ptr why) { slots_.fail(std::move(why)); },
                                            .due = ask_});
}

void ServerShell::begin() {
  if (!has_replica()) open();
}

base::Time ServerShell::turn() {
  base::Time next = base::kNever;
  try {
    const WorkerSlots::Due due = slots_.due(workers());
    next = due.next;
    for (const std::size_t worker : due.given_up) leave(worker);
    next = std::min(next, admit_candidates());
    if (replica_link_) next = std::min(next, replica_link_->turn());
    if (replica_keeper_ && is_whole_) next = std::min(next, replica_keeper_->turn());
  } catch (const std::exception& error) {
    if (std::exchange(is_whole_, false)) fail(error);
  }
  return next;
}

void ServerShell::end() {
  if (replica_link_) replica_link_->end();
  if (replica_keeper_) replica_keeper_->end();
}

ServerStatus ServerShell::status() const {
  ServerStatus status;
  status.workers = workers();
  status.kept_bytes = tables_.kept_bytes();
  if (replica_keeper_) replica_keeper_->count(status);
  status.processor_seconds = processor_seconds();
  slots_.count(status);
  return status;
}

std::size_t ServerShell::workers() const {
  const auto setup = tables_.setup();
  return setup ? setup->workers : 0;
}

ServerTables::Forward ServerShell::to_replica() {
  if (!has_replica()) return nullptr;
  return [this](const Record& record) { replica_link_->forward(record); };
}

streams::StreamEvents ServerShell::accept(std::unique_ptr<streams::Stream> stream) {
  const streams::Identity peer = stream->peer();
  if (peer.role == Role::observer) return tell_status(std::move(stream));
  if (replica_keeper_ && peer.role == Role::server && peer.index == server_before())
    return replica_keeper_->accept(std::move(stream));
  if (peer.role != Role::worker || peer.index >= kMostWorkers)
    return dismiss(std::move(stream), fmt::format("'{}' is neither a worker nor the replicated server; all "
                                                  "servers of a job take the same --servers and --replicas",
                                                  text_of(peer)));
  const auto candidate = candidates_.arrive(peer.index, std::move(stream));
  return {.received = [this, candidate](Payload message) { receive(candidate, std::move(message)); },
          .ended = [this, candidate](const streams::Ending& ending) { lose(*candidate, ending); }};
}

streams::StreamEvents ServerShell::tell_status(std::unique_ptr<streams::Stream> stream) {
  send(*stream, 0, ServerMessage(StatusReport{payload_of(bytes_of(status()))}));
  return dismiss(std::move(stream), {});
}

/// Ends the stream of a caller that takes no part. `why` empty: it has received its answer.
streams::StreamEvents ServerShell::dismiss(std::unique_ptr<streams::Stream> stream, const std::string& why) {
  stream->close(why);
  slots_.retire(std::move(stream));
  ask_();
  return {.received = [](Payload) {}, .ended = [](const streams::Ending&) {}};
}

/// Runs on: the streams' thread. An exception ends the stream.
void ServerShell::receive(const std::shared_ptr<Candidate>& from, Payload bytes) {
  WorkerMessage message = worker_message_of(std::move(bytes));
  std::optional<std::uint64_t> life = candidates_.life_of(*from);
  const bool is_first = !life;
  if (is_first) life = meet(from, message);
  if (life && slots_.admit(from->worker, *life, message)) deliver(from->worker, *life, message);
  if (is_first) ask_();  // a candidate that waits has a deadline, and the first setup begins the patience
}

/// A worker that does not fit the job is refused with the reason, and changes nothing.
std::optional<std::uint64_t> ServerShell::meet(const std::shared_ptr<Candidate>& candidate,
                                               const WorkerMessage& first) {
  if (candidates_.is_refused(*candidate)) return std::nullopt;
  try {
    tables_.require_fitting(candidate->worker, first);
  } catch (const Error& error) {
    candidates_.refuse(*candidate, refusal(candidate->worker, error));
    return std::nullopt;
  }
  const auto life = candidates_.offer(candidate, std::get<Hello>(first));
  if (life) tables_.renew(candidate->worker);
  return life;
}

/// An error of the worker is sent to it; one of a component of the catalogue ends the job.
void ServerShell::deliver(std::size_t worker, std::uint64_t life, const WorkerMessage& message) {
  try {
    if (const std::string why = broken_.with([](const std::string& text) { return text; }); !why.empty())
      throw RemoteFailure(why);
    tables_.receive(worker, message);
    if (std::holds_alternative<Finish>(message)) slots_.mark_finished(worker);
  } catch (const Misuse& error) {  // of a component: a worker's own is a Refusal
    fail(error);
  } catch (const Error& error) {
    slots_.turn_away(worker, life, refusal(worker, error));
    ask_();
  } catch (const std::exception& error) {
    fail(error);
  }
}

/// The job ends by `error`, the current exception: a component of the catalogue has thrown it, and the tables may
/// have half of a change; or the keeper has. A worker puts the server's name and address before the text.
void ServerShell::fail(const std::exception& error) {
  broken_.with([&](std::string& text) { text = error.what(); });
  slots_.fail(std::current_exception());
  options_.log.write(LogLevel::error, fmt::format("server {}: the job ends: {}", options_.index, error.what()));
  slots_.turn_all_away(refusal_of(RemoteFailure(error.what())));
  ask_();
}

/// The others continue without the worker.
void ServerShell::leave(std::size_t worker) {
  options_.log.write(LogLevel::warning, fmt::format("server {}: gave up worker {} after {:g} s; others continue",
                                                    options_.index, worker, base::seconds(options_.patience)));
  try {
    tables_.leave(worker);
  } catch (const std::exception& error) {
    fail(error);
  }
}

/// The tables are here. Workers that came before are answered now; requests to the replaced server are not repeated.
void ServerShell::open() {
  for (const std::size_t worker : tables_.departed()) slots_.give_up(worker);
  for (const auto& [worker, message] : slots_.open()) deliver(worker, slots_.life_of(worker), message);
  ask_();  // the patience with workers that are away begins
}

/// The worker reports the reason of its refusal; the server only logs it.
Refuse ServerShell::refusal(std::size_t worker, const Error& error) const {
  options_.log.write(error.kind() == ErrorKind::mismatch ? LogLevel::info : LogLevel::warning,
                     fmt::format("server {}: refused worker {}: {}", options_.index, worker, error.what()));
  return refusal_of(error);
}

void ServerShell::lose(Candidate& candidate, const streams::Ending& ending) {
  const auto life = candidates_.leave(candidate);
  const bool is_lost = life && slots_.lose(candidate.worker, *life);
  ask_();
  if (!is_lost) return;
  options_.log.write(LogLevel::warning, fmt::format("server {}: worker {} disconnected; waiting {:g} s for it: {}",
                                                    options_.index, candidate.worker, base::seconds(options_.patience),
                                                    ending.reason.empty() ? "it left" : ending.reason));
}

base::Time ServerShell::admit_candidates() {
  const Candidates::Due due = candidates_.due();
  for (const auto& candidate : due.admitted) {
    WorkerMessage first = candidate->first;
    tables_.renew(candidate->worker);
    if (slots_.admit(candidate->worker, *candidate->life, first)) deliver(candidate->worker, *candidate->life, first);
  }
  for (const auto& candidate : due.refused)
    candidates_.refuse(
        *candidate,
        refusal(candidate->worker, Mismatch(fmt::format("worker {} is another live process; give each process of "
                                                        "the job its own number (SYNCOPATE_RANK)",
                                                        candidate->worker))));
  if (!due.admitted.empty()) ask_();  // the streams that they replace are to end
  return due.next;
}

}  // namespace syncopate::server
