// The server of include/syncopate/server.hpp: its shell, the streams, the snapshots, and the thread of its turns.
#include "syncopate/server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/require.hpp"
#include "server/process/access.hpp"
#include "server/process/server_shell.hpp"
#include "server/process/turn_thread.hpp"
#include "server/snapshot/snapshot_folder.hpp"
#include "server/snapshot/snapshot_writer.hpp"
#include "server/streams/streams.hpp"

namespace syncopate {

namespace streams = server::streams;
using server::ServerShell, server::ServerTables, server::Snapshot, server::SnapshotFolder, server::SnapshotWriter,
    server::TurnThread;

namespace {

/// In multiples of the silence: a stream whose other end is silent has ended within this time, even on a busy machine.
constexpr int kLosing = 3;

std::size_t limit_of(const ServerOptions& options) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const std::size_t usual = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) / 4 * 3;
  const std::size_t bytes = options.memory_bytes > 0 ? options.memory_bytes : usual;
  return bytes / (1 + static_cast<std::size_t>(options.replicas));
}

/// The next server, which keeps this one's replica. An attempt is short: another process may be replacing it.
streams::Streams::Target keeper_of(const ServerOptions& options) {
  const std::size_t keeper = (options.index + 1) % options.servers.size();
  return {
      .address = options.servers[keeper], .server = static_cast<std::int32_t>(keeper), .patience = server::kAttempt};
}

ServerShell::Options shell_options(const ServerOptions& options) {
  return {.index = options.index,
          .servers = std::max<std::size_t>(options.servers.size(), 1),
          .memory_bytes = limit_of(options),
          .patience = options.patience,
          .losing = kLosing * options.access.silence,
          .process = server::drawn_process(),
          .log = options.log,
          .catalogue = options.catalogue,
          .keeper_address = options.replicas > 0 ? keeper_of(options).address : std::string()};
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

ServerOptions with_log(ServerOptions options) {
  options.log = with_environment_level(std::move(options.log));
  return options;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(with_log(options)),
        shell_(
            shell_options(options_),
            [this](streams::DialEvents events) { streams_->dial(keeper_of(options_), std::move(events)); },
            [this] { turns_.ask(); }, std::make_shared<base::SteadyClock>()) {
    const streams::EndOptions end = server::end_options(
        options.access, {.role = streams::Identity::Role::server, .index = options.index}, options_.log);
    if (!options.snapshots.empty()) go_on();
    shell_.begin();
    base::require(!options.addresses.empty(), "a parameter server needs an address; allowed: 1 or more");
    streams_ = std::make_unique<streams::Streams>(
        end, options.addresses,
        [this](std::unique_ptr<streams::Stream> stream) { return shell_.accept(std::move(stream)); });
    turns_.start([this] { return shell_.turn(); });
  }

  ~Impl() {
    turns_.stop();
    shell_.end();
    streams_.reset();  // no callback comes after this
  }

  [[nodiscard]] const base::OwnProcess& process() const noexcept { return process_; }
  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return streams_->addresses(); }

  [[nodiscard]] ServerStatus status() const {
    process_.require("a parameter server");
    return shell_.status();
  }

  bool wait_for_end(std::chrono::milliseconds time) {
    process_.require("a parameter server");
    return shell_.wait_for_end(time);
  }

 private:
  void go_on() {
    ServerTables& tables = shell_.tables();
    folder_.emplace(options_.snapshots, options_.index, options_.log);
    if (const auto snapshot = folder_->newest_in_common()) {
      const std::string file = folder_->file_of(options_.index, snapshot->step);
      tables.restore(snapshot->setup, snapshot->step, snapshot->images, "that of the snapshot " + file);
      options_.log.write(LogLevel::info, fmt::format("server {}: resumes from {}", options_.index, file));
    }
    snapshots_.emplace([this](const Snapshot& snapshot) { folder_->write(snapshot); }, options_.index, options_.log);
    tables.take_images(
        options_.snapshot_every, [this](ServerTables::Image image) { snapshots_->add(std::move(image)); },
        [this](server::Clock step) { folder_->begin(step); });
  }

  const ServerOptions options_;
  const base::OwnProcess process_;
  std::optional<SnapshotFolder> folder_;
  std::optional<SnapshotWriter> snapshots_;  ///< destroyed after the shell
  TurnThread turns_;
  ServerShell shell_;
  std::unique_ptr<streams::Streams> streams_;
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
