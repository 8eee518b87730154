// The server of include/syncopate/server.hpp: streams of workers and of other servers, and the tables.
#include "syncopate/server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/guarded.hpp"
#include "base/require.hpp"
#include "server/process/access.hpp"
#include "server/process/newcomers.hpp"
#include "server/process/replica_keeper.hpp"
#include "server/process/replica_link.hpp"
#include "server/process/status.hpp"
#include "server/process/worker_slots.hpp"
#include "server/snapshot/snapshot_folder.hpp"
#include "server/snapshot/snapshot_writer.hpp"
#include "server/streams/streams.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate {

using namespace server;

namespace {

/// In multiples of the silence: a stream whose other end is silent has ended within this time, even on a busy machine.
constexpr int kLosing = 3;

std::size_t limit_of(const ServerOptions& options) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const std::size_t usual = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) / 4 * 3;
  const std::size_t bytes = options.memory_bytes > 0 ? options.memory_bytes : usual;
  return bytes / (1 + static_cast<std::size_t>(options.replicas));
}

std::size_t server_before(const ServerOptions& options) {
  return (options.index + options.servers.size() - 1) % options.servers.size();
}

void require_allowed(const ServerOptions& options) {
  base::require(options.patience.count() > 0, "a patience of {} ms; allowed: more than 0", options.patience.count());
  base::require(options.replicas == 0 || options.replicas == 1, "{} replicas; allowed: 0, 1", options.replicas);
  base::require(options.replicas == 0 || (options.servers.size() > 1 && options.index < options.servers.size()),
                "server {} of {} with a replica; allowed: the addresses of 2 servers or more, this one among them",
                options.index, options.servers.size());
  base::require(
      options.snapshots.empty() || options.replicas == 0,
      "--snapshots with --replicas {}; allowed: one of both, because a server that begins from a snapshot and "
      "its replica would both be that server",
      options.replicas);
  base::require(options.snapshot_every > 0, "a snapshot every {} steps; allowed: 1 or more", options.snapshot_every);
}

using Role = streams::Identity::Role;

streams::Identity own(std::size_t server) { return {.role = Role::server, .index = server}; }

ServerOptions with_log(ServerOptions options) {
  options.log = with_environment_level(std::move(options.log));
  return options;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(with_log(options)),
        tables_(
            options.index, limit_of(options), [this](Outgoing outgoing) { slots_.send(std::move(outgoing)); },
            to_replica(), options.catalogue),
        slots_(options.patience),
        newcomers_(slots_, kLosing * options.access.silence) {
    const streams::EndOptions end = end_options(options.access, own(options.index), options_.log);
    if (options.replicas > 0)
      replica_.emplace(server_before(options), limit_of(options), kLosing * options.access.silence, options_.log,
                       options.catalogue);
    if (!options.snapshots.empty()) go_on();
    if (options.replicas == 0) open();
    base::require(!options.addresses.empty(), "a parameter server needs an address; allowed: 1 or more");
    streams_ = std::make_unique<streams::Streams>(
        end, options.addresses, [this](std::unique_ptr<streams::Stream> stream) { return accept(std::move(stream)); });
    keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
    if (options.replicas > 0) link();
  }

  ~Impl() {
    if (link_) link_->end();
    keeper_.request_stop();
    slots_.wake();
    keeper_.join();
    if (replica_) replica_->end();
    streams_.reset();  // no callback comes after this
  }

  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return streams_->addresses(); }

  [[nodiscard]] ServerStatus status() const {
    process_.require("a parameter server");
    ServerStatus status;
    status.workers = workers();
    status.kept_bytes = tables_.kept_bytes();
    if (replica_) replica_->count(status);
    status.processor_seconds = processor_seconds();
    slots_.count(status);
    return status;
  }

  bool wait_for_end(std::chrono::milliseconds time) {
    process_.require("a parameter server");
    return slots_.wait_for_end(time, [this] { return workers(); });
  }

 private:
  [[nodiscard]] std::size_t workers() const {
    const auto setup = tables_.setup();
    return setup ? setup->workers : 0;
  }

  [[nodiscard]] ServerTables::Forward to_replica() {
    if (options_.replicas == 0) return nullptr;
    return [this](const Record& record) { link_->forward(record); };
  }

  void go_on() {
    folder_.emplace(options_.snapshots, options_.index, options_.log);
    if (const auto snapshot = folder_->newest_in_common()) {
      const std::string file = folder_->file_of(options_.index, snapshot->step);
      tables_.restore(snapshot->setup, snapshot->step, snapshot->images, "that of the snapshot " + file);
      options_.log.write(LogLevel::info, fmt::format("server {}: resumes from {}", options_.index, file));
    }
    snapshots_.emplace([this](const Snapshot& snapshot) { folder_->write(snapshot); }, options_.index, options_.log);
    tables_.take_images(
        options_.snapshot_every, [this](ServerTables::Image image) { snapshots_->take(std::move(image)); },
        [this](Clock step) { folder_->begin(step); });
  }

  void link() {
    const std::size_t keeper = (options_.index + 1) % options_.servers.size();
    link_ = std::make_unique<ReplicaLink>(
        *streams_, ReplicaLink::Keeper{options_.servers[keeper], keeper, options_.index}, options_.log, tables_,
        ReplicaLink::Events{.joined = [this] { open(); },
                            .failed = [this](std::exception_ptr why) { slots_.fail(std::move(why)); }});
    link_->begin();
  }

  streams::StreamEvents accept(std::unique_ptr<streams::Stream> stream) {
    const streams::Identity peer = stream->peer();
    if (peer.role == Role::observer) return tell_status(std::move(stream));
    if (replica_ && peer == own(server_before(options_))) return replica_->accept(std::move(stream));
    if (peer.role != Role::worker || peer.index >= kMostWorkers)
      return dismiss(std::move(stream), fmt::format("'{}' is neither a worker nor the replicated server; all "
                                                    "servers of a job take the same --servers and --replicas",
                                                    text_of(peer)));
    const auto newcomer = newcomers_.arrive(peer.index, std::move(stream));
    return {.received = [this, newcomer](Payload message) { receive(newcomer, std::move(message)); },
            .ended = [this, newcomer](const streams::Ending& ending) { lose(*newcomer, ending); }};
  }

  streams::StreamEvents tell_status(std::unique_ptr<streams::Stream> stream) {
    stream->send(0, head_of({.kind = MessageKind::status}), payload_of(bytes_of(status())));
    return dismiss(std::move(stream), {});
  }

  /// Ends the stream of a caller that takes no part. `why` empty: it has received its answer.
  streams::StreamEvents dismiss(std::unique_ptr<streams::Stream> stream, const std::string& why) {
    stream->close(why);
    slots_.retire(std::move(stream));
    return {.received = [](Payload) {}, .ended = [](const streams::Ending&) {}};
  }

  /// Runs on: the streams' thread. An exception ends the stream.
  void receive(const std::shared_ptr<Newcomer>& from, Payload bytes) {
    const std::size_t length = bytes.bytes.size();
    Message message = message_of(std::move(bytes), true);
    std::optional<std::uint64_t> life = newcomers_.life_of(*from);
    if (!life) life = meet(from, message);
    if (life && slots_.admit(from->worker, *life, length, message)) take(from->worker, *life, message);
  }

  /// A worker that does not fit the job is refused with the reason, and changes nothing.
  std::optional<std::uint64_t> meet(const std::shared_ptr<Newcomer>& newcomer, const Message& first) {
    if (newcomers_.is_refused(*newcomer)) return std::nullopt;
    try {
      tables_.require_fitting(newcomer->worker, first);
    } catch (const Error& error) {
      newcomers_.refuse(*newcomer, refusal(newcomer->worker, error));
      return std::nullopt;
    }
    const auto life = newcomers_.offer(newcomer, first);
    if (life) tables_.renew(newcomer->worker);
    return life;
  }

  /// An error of the worker is sent to it; one of a component of the catalogue ends the job.
  void take(std::size_t worker, std::uint64_t life, const Message& message) {
    try {
      if (const std::string why = broken_.with([](const std::string& text) { return text; }); !why.empty())
        throw RemoteFailure(why);
      tables_.receive(worker, message);
      if (message.kind == MessageKind::finish) slots_.mark_finished(worker);
    } catch (const Misuse& error) {  // of a component: a worker's own is a Refusal
      fail(error);
    } catch (const Error& error) {
      slots_.turn_away(worker, life, refusal(worker, error));
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  /// The job ends by `error`, the current exception: a component of the catalogue has thrown it, and the tables may
  /// have half of a change; or the keeper has. A worker puts the server's name and address before the text.
  void fail(const std::exception& error) {
    broken_.with([&](std::string& text) { text = error.what(); });
    slots_.fail(std::current_exception());
    options_.log.write(LogLevel::error, fmt::format("server {}: the job ends: {}", options_.index, error.what()));
    slots_.turn_all_away(refusal_of(RemoteFailure(error.what())));
  }

  /// The others continue without the worker.
  void leave(std::size_t worker) {
    options_.log.write(LogLevel::warning, fmt::format("server {}: gave up worker {} after {:g} s; others continue",
                                                      options_.index, worker, base::seconds(options_.patience)));
    try {
      tables_.leave(worker);
    } catch (const std::exception& error) {
      fail(error);
    }
  }

  /// The tables are here. Workers that came before are answered now; requests to the replaced server are not repeated.
  void open() {
    for (const std::size_t worker : tables_.departed()) slots_.give_up(worker);
    for (const auto& [worker, message] : slots_.open()) take(worker, slots_.life_of(worker), message);
  }

  /// The worker reports the reason of its refusal; the server only logs it.
  [[nodiscard]] Message refusal(std::size_t worker, const Error& error) const {
    options_.log.write(error.kind() == ErrorKind::mismatch ? LogLevel::info : LogLevel::warning,
                       fmt::format("server {}: refused worker {}: {}", options_.index, worker, error.what()));
    return refusal_of(error);
  }
  [[nodiscard]] static Message refusal_of(const Error& error) {
    return {.kind = MessageKind::refuse,
            .block = static_cast<std::uint32_t>(error.kind()),
            .body = payload_of(error.what())};
  }

  void lose(Newcomer& newcomer, const streams::Ending& ending) {
    const auto life = newcomers_.leave(newcomer);
    if (!life || !slots_.lose(newcomer.worker, *life)) return;
    options_.log.write(LogLevel::warning, fmt::format("server {}: worker {} disconnected; waiting {:g} s for it: {}",
                                                      options_.index, newcomer.worker, base::seconds(options_.patience),
                                                      ending.reason.empty() ? "it left" : ending.reason));
  }

  void seat_newcomers() {
    const Newcomers::Due due = newcomers_.due();
    for (const auto& newcomer : due.seated) {
      Message first = newcomer->first;
      tables_.renew(newcomer->worker);
      const std::size_t length = kHeadBytes + first.body.bytes.size();
      if (slots_.admit(newcomer->worker, *newcomer->life, length, first))
        take(newcomer->worker, *newcomer->life, first);
    }
    for (const auto& newcomer : due.refused)
      newcomers_.refuse(
          *newcomer,
          refusal(newcomer->worker, Mismatch(fmt::format("worker {} is another live process; give each process of "
                                                         "the job its own number (SYNCOPATE_RANK)",
                                                         newcomer->worker))));
  }

  /// Runs on: `keeper_`. The first error ends the job. Afterwards streams still end here, and workers are refused.
  void keep(const std::stop_token& stop) {
    bool is_whole = true;
    while (!stop.stop_requested()) {
      try {
        for (const std::size_t worker : slots_.turn(workers())) leave(worker);
        seat_newcomers();
        if (replica_ && is_whole) replica_->turn();
      } catch (const std::exception& error) {
        if (std::exchange(is_whole, false)) fail(error);
      }
    }
  }

  const ServerOptions options_;
  const base::OwnProcess process_;
  std::optional<SnapshotFolder> folder_;
  std::optional<SnapshotWriter> snapshots_;  ///< destroyed after the tables
  ServerTables tables_;
  base::Guarded<std::string> broken_;  ///< what a component of the catalogue threw; empty: nothing
  WorkerSlots slots_;
  Newcomers newcomers_;
  std::optional<ReplicaKeeper> replica_;  ///< of the previous server
  std::unique_ptr<ReplicaLink> link_;     ///< to this server's replica
  std::unique_ptr<streams::Streams> streams_;
  std::jthread keeper_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() {
  if (impl_->process().is_inherited()) static_cast<void>(impl_.release());  // it would wait for its parent's threads
}

std::unique_ptr<Server> Server::start(const ServerOptions& options) {
  require_allowed(options);
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(options)));
}

const std::vector<std::string>& Server::addresses() const noexcept { return impl_->addresses(); }
ServerStatus Server::status() const { return impl_->status(); }
bool Server::wait_for_end(std::chrono::milliseconds time) { return impl_->wait_for_end(time); }

}  // namespace syncopate
