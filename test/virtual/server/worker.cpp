// A virtual worker: the production tables, streams to all servers, and a program of steps.
#include <fmt/format.h>

#include <algorithm>

#include "virtual/server/job.hpp"

namespace syncopate::server {

namespace {
std::vector<std::vector<float>> zeros(const Setup& setup) {
  std::vector<std::vector<float>> weights;
  for (const TableShape& table : setup.tables) weights.emplace_back(table.elements);
  return weights;
}

std::vector<std::string> addresses(std::size_t servers) {
  std::vector<std::string> all;
  for (std::size_t server = 0; server < servers; ++server) all.push_back(Machine::address_of(server));
  return all;
}
}  // namespace

/// A stream of a worker whose messages the test sees.
class WorkerProcess::Watched final : public streams::Stream {
 public:
  Watched(std::unique_ptr<streams::Stream> stream, WorkerProcess& worker, std::size_t server)
      : stream_(std::move(stream)), worker_(worker), server_(server) {}
  void end() override { stream_->end(); }
  void send(std::uint64_t priority, base::ConstBytes head, Payload body) override {
    worker_.note_sent(server_, head);
    stream_->send(priority, head, std::move(body));
  }
  void close(std::string_view error) override { stream_->close(error); }
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return stream_->peer(); }

 private:
  const std::unique_ptr<streams::Stream> stream_;
  WorkerProcess& worker_;
  const std::size_t server_;
};

WorkerProcess::WorkerProcess(Job& job, std::size_t index, std::size_t host, Clock steps)
    : machine(job.network, host, {.role = streams::Identity::Role::worker, .index = index}),
      weights(zeros(job.setup)),
      shell(
          {.worker = index,
           .servers = addresses(job.setup.servers),
           .timeout = kWorkerTimeout,
           .process = 1 + host,
           .log = machine.log()},
          [this](std::size_t server, streams::DialEvents events) { dial(server, std::move(events)); },
          [this] { machine.ask(); }, std::make_shared<WorldClock>(job.world)),
      pushed(job.setup.rows.size()),
      pushed_in(job.setup.rows.size()),
      job_(job),
      index_(index),
      steps_(steps),
      pending_(job.setup.servers),
      fetches_(job.setup.servers) {}

WorkerProcess::~WorkerProcess() {
  shell.end();
  machine.end();
}

std::vector<Buffer> WorkerProcess::buffers() {
  std::vector<Buffer> buffers;
  for (auto& table : weights) buffers.emplace_back(std::span(table));
  return buffers;
}

void WorkerProcess::start() {
  machine.run(
      [this] {
        shell.turn();
        return base::kNever;
      },
      [this] { look(); });
}

void WorkerProcess::die() {
  is_dead_ = true;
  job_.world.note("dies", index_);
  machine.die();
}

void WorkerProcess::cut(std::size_t server) {
  if (!machine.cut(server)) return;
  job_.world.note("stream breaks", index_, server);
  ++job_.breaks;
}

/// The other one has the place, or lives in it.
bool WorkerProcess::is_refused() const {
  return failure.find("another one has taken its place") != std::string::npos ||
         failure.find("is another live process") != std::string::npos;
}

void WorkerProcess::dial(std::size_t server, streams::DialEvents events) {
  const auto reached = [this, server, reached = std::move(events.reached)](std::unique_ptr<streams::Stream> stream) {
    pending_[server].clear();
    fetches_[server].clear();
    streams::StreamEvents to = reached(std::make_unique<Watched>(std::move(stream), *this, server));
    to.received = [this, server, received = std::move(to.received)](Payload bytes) {
      note_received(server, bytes);
      received(std::move(bytes));
    };
    return to;
  };
  machine.dial(server, {.reached = reached, .failed = std::move(events.failed)});
}

void WorkerProcess::note_sent(std::size_t server, base::ConstBytes head) {
  const WorkerMessage message = worker_message_of({{}, head});
  const auto* const push = std::get_if<Push>(&message);
  const auto* const fetch = std::get_if<Fetch>(&message);
  if (push != nullptr || fetch != nullptr) {
    const std::uint32_t block = push != nullptr ? push->block : fetch->block;
    if (const int pending = ++pending_[server][block]; pending > 1)
      job_.law(fmt::format("worker {} has {} pending requests of block {}", index_, pending, block));
  }
  if (fetch != nullptr) {
    auto& [at, count] = fetches_[server][fetch->block];
    count = at == clock() ? count + 1 : 1;
    at = clock();
    if (count > 3)  // the first weights, those that a step must have, and the last ones
      job_.law(fmt::format("worker {} fetches block {} again and again at step {}", index_, fetch->block, at));
  }
  job_.world.note("worker sends", index_, message.index());
  job_.pushes += push != nullptr ? 1 : 0;
}

void WorkerProcess::note_received(std::size_t server, const Payload& bytes) {
  const ServerMessage message = server_message_of(bytes);
  const auto* const weights = std::get_if<Weights>(&message);
  if (weights != nullptr && !weights->is_unasked) pending_[server][weights->block] = 0;
  job_.world.note("worker receives", index_, message.index());
}

/// As the calls of a program while they wait. After an error the process ends.
void WorkerProcess::look() {
  if (is_dead_ || has_finished || !failure.empty()) return;
  try {
    shell.require_whole();
  } catch (const std::exception& error) {
    failure = error.what();
    return shell.end();
  }
  if (!shell.has_tables() && shell.is_connected()) shell.introduce(job_.setup, buffers(), {});
  if (!has_begun && !shell.is_admitted()) return;
  const std::uint64_t arrivals = shell.arrivals();
  if (has_begun && arrivals == seen_) return;
  seen_ = arrivals;
  if (!std::exchange(has_begun, true)) shell.begin();
  go_on();
}

void WorkerProcess::go_on() {
  if (is_held_ && tables().rows().has_room()) return compute();
  if (computes_ || has_finished || is_dead_ || !are_pulled()) return;
  if (visit_ == Visit::none) tables().catch_up(shell.newest());
  if (!has_visited()) return;
  if (tables().clock() >= steps_) {
    if (!tables().finish()) return;
    for (std::size_t table = 0; table < weights.size(); ++table) tables().read(table);
    has_finished = true;
    job_.world.note("finished", index_);
    return shell.leave();
  }
  tables().demand();
  for (std::size_t table = 0; table < weights.size(); ++table)
    if (!tables().may_read(table)) return;
  computes_ = true;
  for (std::size_t table = 0; table < weights.size(); ++table) tables().read(table);
  job_.check_read(index_);
  job_.world.in(job_.compute_time(index_), [this] { compute(); });
}

void WorkerProcess::compute() {
  if (is_dead_) return;
  if (machine.is_stopped()) return job_.world.at(machine.stopped_until(), [this] { compute(); });
  is_held_ = !tables().rows().has_room();
  if (is_held_) return;
  const UpdateStep at{job_.options.rate, static_cast<std::uint64_t>(tables().clock()) + 1};
  for (std::size_t table = weights.size(); table-- > 0;) {
    std::vector<float> gradient(weights[table].size());
    job_.compute_gradient(index_, table, gradient);
    tables().update(table, gradient, at);
  }
  push_rows();
  tables().end_step(at);
  ++made;
  computes_ = false;
  go_on();
}

}  // namespace syncopate::server
