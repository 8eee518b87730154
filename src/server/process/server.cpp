// The server of include/syncopate/server.hpp: streams of workers on one side, the tables on the other.
#include "syncopate/server.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/require.hpp"
#include "server/process/access.hpp"
#include "server/rpc/listener.hpp"
#include "server/table/server_tables.hpp"

namespace syncopate {

using namespace server;

namespace {

std::size_t limit_of(std::size_t bytes) {
  if (bytes > 0) return bytes;
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page) / 4 * 3;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServerOptions& options)
      : options_(options),
        tables_(options.index, limit_of(options.memory_bytes),
                [this](Outgoing outgoing) { send(std::move(outgoing)); }),
        listener_(rpc::listen(options.addresses,
                              end_options(options.access, fmt::format("server {}", options.index), options.log),
                              [this](std::unique_ptr<rpc::Stream> stream) { return accept(std::move(stream)); })),
        keeper_([this](const std::stop_token& stop) { keep(stop); }) {}

  ~Impl() {
    keeper_.request_stop();
    changed_.notify_all();
    keeper_.join();
    listener_.reset();  // no callback comes any more
  }

  [[nodiscard]] const std::vector<std::string>& addresses() const noexcept { return listener_->addresses(); }

  [[nodiscard]] ServerStatus status() const {
    const auto setup = tables_.setup();
    const std::lock_guard lock(mutex_);
    ServerStatus status = traffic_;
    status.workers = setup ? setup->workers : 0;
    status.kept_bytes = tables_.kept_bytes();
    status.processor_seconds = processor_seconds();
    for (const auto& [worker, seat] : seats_) {
      status.connected += seat.stream ? 1 : 0;
      status.finished += seat.has_finished ? 1 : 0;
    }
    return status;
  }

  bool wait_for_end(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return has_ended(); });
  }

 private:
  struct Seat {
    std::shared_ptr<rpc::Stream> stream{};  ///< of now; null: the worker is away
    std::uint64_t life = 0;                 ///< counts streams: what an earlier one says is late
    base::Time away_since{};
    bool is_given_up = false, has_finished = false;
  };

  /// A stream becomes its worker's; the one that it had before is cut off.
  rpc::StreamEvents accept(std::unique_ptr<rpc::Stream> stream) {
    const std::optional<std::size_t> worker = worker_named(stream->peer());
    if (stream->peer() == kObserver) return tell(std::move(stream));
    if (!worker) {
      stream->close(fmt::format("'{}' is no worker", stream->peer()));
      retire(std::move(stream));
      return {.received = [](Payload) {}, .ended = [](const rpc::Ending&) {}};
    }
    const std::lock_guard lock(mutex_);
    Seat& seat = seats_[*worker];
    if (seat.stream) {
      seat.stream->close("the worker has come again on another stream");
      retired_.push_back(std::move(seat.stream));
    }
    seat.stream = std::move(stream);
    seat.is_given_up = false;
    const std::uint64_t life = ++seat.life;
    changed_.notify_all();
    return {.received = [this, worker = *worker, life](Payload message) { receive(worker, life, std::move(message)); },
            .ended = [this, worker = *worker, life](const rpc::Ending& ending) { lose(worker, life, ending); }};
  }

  rpc::StreamEvents tell(std::unique_ptr<rpc::Stream> stream) {
    auto text = std::make_shared<std::string>(bytes_of(status()));
    const base::ConstBytes bytes = std::as_bytes(std::span(*text));
    stream->send(0, head_of({.says = Says::status}), {std::move(text), bytes});
    stream->close({});
    retire(std::move(stream));
    return {.received = [](Payload) {}, .ended = [](const rpc::Ending&) {}};
  }

  /// Runs on: gRPC's threads. An error is the worker's: it is told, and its stream ends.
  void receive(std::size_t worker, std::uint64_t life, Payload bytes) {
    const std::size_t length = bytes.bytes.size();
    {
      const std::lock_guard lock(mutex_);
      if (seats_[worker].life != life) return;
      traffic_.received_bytes += length;
    }
    try {
      const Message message = message_of(std::move(bytes), true);
      tables_.receive(worker, message);
      if (message.says == Says::finish) mark_finished(worker);
    } catch (const Error& error) {
      refuse(worker, error);
      throw;
    }
  }

  void refuse(std::size_t worker, const Error& error) {
    auto text = std::make_shared<std::string>(error.what());
    const base::ConstBytes bytes = std::as_bytes(std::span(*text));
    send({worker,
          0,
          {.says = Says::refuse, .block = static_cast<std::uint32_t>(error.kind()), .body = {std::move(text), bytes}}});
  }

  void send(Outgoing outgoing) {
    std::shared_ptr<rpc::Stream> stream;
    {
      const std::lock_guard lock(mutex_);
      const auto seat = seats_.find(outgoing.worker);
      if (seat == seats_.end() || !seat->second.stream) return;
      stream = seat->second.stream;
      traffic_.sent_bytes += outgoing.message.body.bytes.size();
    }
    stream->send(outgoing.priority, head_of(outgoing.message), std::move(outgoing.message.body));
  }

  void mark_finished(std::size_t worker) {
    const std::lock_guard lock(mutex_);
    seats_[worker].has_finished = true;
    changed_.notify_all();
  }

  void lose(std::size_t worker, std::uint64_t life, const rpc::Ending& ending) {
    const std::lock_guard lock(mutex_);
    Seat& seat = seats_[worker];
    if (seat.life != life) return;
    if (!seat.has_finished)
      options_.log.write(LogLevel::warning, fmt::format("server {}: worker {} is away: {}", options_.index, worker,
                                                        ending.reason.empty() ? "it left" : ending.reason));
    retired_.push_back(std::move(seat.stream));
    seat.away_since = clock_.now();
    changed_.notify_all();
  }

  void retire(std::shared_ptr<rpc::Stream> stream) {
    const std::lock_guard lock(mutex_);
    retired_.push_back(std::move(stream));
    changed_.notify_all();
  }

  /// Runs on: `keeper_`. Streams are destroyed here, because a callback must not; workers are given up here.
  void keep(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<std::shared_ptr<rpc::Stream>> retired;
      std::vector<std::size_t> given_up;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, kTurn, [&] { return stop.stop_requested() || !retired_.empty(); });
        retired.swap(retired_);
        given_up = overdue();
      }
      retired.clear();
      for (const std::size_t worker : given_up) {
        options_.log.write(LogLevel::warning,
                           fmt::format("server {}: worker {} is waited for no more: it has been away "
                                       "for {} ms",
                                       options_.index, worker, options_.patience.count()));
        tables_.leave(worker);
      }
    }
  }

  /// Marks them; called under the lock. Workers that never came are away since the first one came.
  std::vector<std::size_t> overdue() {
    std::vector<std::size_t> given_up;
    const auto setup = tables_.setup();
    if (!setup) return given_up;
    const base::Time now = clock_.now();
    if (!began_) began_ = now;
    for (std::size_t worker = 0; worker < setup->workers; ++worker) {
      const bool is_known = seats_.contains(worker);
      Seat& seat = seats_[worker];
      if (!is_known) seat.away_since = *began_;
      if (seat.stream || seat.is_given_up || seat.has_finished || now - seat.away_since < options_.patience) continue;
      seat.is_given_up = true;
      given_up.push_back(worker);
    }
    if (!given_up.empty()) changed_.notify_all();
    return given_up;
  }

  [[nodiscard]] bool has_ended() const {
    const auto setup = tables_.setup();
    if (!setup || seats_.size() < setup->workers) return false;
    return std::ranges::all_of(seats_,
                               [](const auto& entry) { return entry.second.has_finished || entry.second.is_given_up; });
  }

  static constexpr std::chrono::milliseconds kTurn{50};

  const ServerOptions options_;
  const base::SteadyClock clock_;
  ServerTables tables_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::size_t, Seat> seats_;  ///< by worker
  std::vector<std::shared_ptr<rpc::Stream>> retired_;
  std::optional<base::Time> began_;
  ServerStatus traffic_;
  std::unique_ptr<rpc::Listener> listener_;
  std::jthread keeper_;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

std::unique_ptr<Server> Server::start(const ServerOptions& options) {
  base::require(options.patience.count() > 0, "a patience of {} ms; allowed: more than 0", options.patience.count());
  return std::unique_ptr<Server>(new Server(std::make_unique<Impl>(options)));
}

ServerStatus status_of(const std::string& address, const JobAccess& access) {
  base::Guarded<std::optional<ServerStatus>> answer;
  base::Guarded<bool> has_ended{false};
  const auto stream =
      rpc::dial(address, end_options(access, std::string(kObserver), {}),
                {.received =
                     [&](Payload bytes) {
                       const Message message = message_of(std::move(bytes), false);
                       const base::ConstBytes body = message.body.bytes;
                       answer.with([&](auto& status) {
                         status = status_from({reinterpret_cast<const char*>(body.data()), body.size()});
                       });
                     },
                 .ended = [&](const rpc::Ending&) { has_ended.change([](bool& ended) { ended = true; }); }});
  const base::Time deadline = base::SteadyClock().now() + std::chrono::seconds(10);
  has_ended.wait_until(
      deadline, [](bool ended) { return ended; }, [](bool) {});
  const auto status = answer.with([](const auto& told) { return told; });
  if (!status) throw Timeout(fmt::format("the server at {} does not tell its status", address));
  return *status;
}

const std::vector<std::string>& Server::addresses() const noexcept { return impl_->addresses(); }
ServerStatus Server::status() const { return impl_->status(); }
bool Server::wait_for_end(std::chrono::milliseconds time) { return impl_->wait_for_end(time); }

}  // namespace syncopate
