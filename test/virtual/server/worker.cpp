// A virtual worker: the production tables, streams to all servers, and a program of steps.
#include <fmt/format.h>

#include <algorithm>

#include "virtual/server/job.hpp"

namespace syncopate::virtual_server {

using namespace server;

namespace {
std::vector<std::vector<float>> zeros(const Setup& setup) {
  std::vector<std::vector<float>> weights;
  for (const TableShape& table : setup.tables) weights.emplace_back(table.elements);
  return weights;
}
}  // namespace

WorkerProcess::WorkerProcess(Job& job, std::size_t index, std::size_t host, Clock steps)
    : machine(job.network, host, {.role = streams::Identity::Role::worker, .index = index}),
      weights(zeros(job.setup)),
      tables(job.setup, index, buffers(), [this](Request request) { send(std::move(request)); }),
      pushed(job.setup.rows.size()),
      pushed_in(job.setup.rows.size()),
      job_(job),
      index_(index),
      process_(1 + host),
      steps_(steps),
      links_(job.setup.servers) {}

std::vector<Buffer> WorkerProcess::buffers() {
  std::vector<Buffer> buffers;
  for (auto& table : weights) buffers.emplace_back(std::span(table));
  return buffers;
}

void WorkerProcess::start() {
  for (std::size_t server = 0; server < links_.size(); ++server) dial(server);
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

bool WorkerProcess::is_refused() const { return failure.find("another one has taken its place") != std::string::npos; }

void WorkerProcess::dial(std::size_t server) {
  if (is_dead_ || has_left_ || is_refused()) return;
  const std::uint64_t life = ++links_[server].life;
  const auto reached = [this, server, life](std::unique_ptr<streams::Stream> stream) -> streams::StreamEvents {
    Link& link = links_[server];
    link.is_welcome = false;
    link.under_way.clear();
    link.stream = std::move(stream);
    greet(server);
    return {.received = [this, server, life](Payload bytes) { receive(server, life, std::move(bytes)); },
            .ended = [this, server, life](const streams::Ending& how) { lose(server, life, how); }};
  };
  machine.dial(server, {.reached = reached, .failed = [this, server](const std::exception_ptr&) { dial(server); }});
}

/// Links::lose.
void WorkerProcess::lose(std::size_t server, std::uint64_t life, const streams::Ending& how) {
  Link& link = links_[server];
  if (link.life != life || is_dead_) return;
  if (how.failure && *how.failure != ErrorKind::peer_lost &&
      how.reason.find("opened another stream") == std::string::npos)
    failure = how.reason;
  ++link.life;
  link.is_welcome = false;
  job_.world.in(job_.world.draw(0ns, Duration(50ms)), [this, server] { dial(server); });
}

/// Links::greet.
void WorkerProcess::greet(std::size_t server) {
  Link& link = links_[server];
  link.welcome.reset();
  if (!link.stream) return;
  const Entry entry = has_begun ? Entry{} : entry_;
  const Message setup{.kind = MessageKind::setup,
                      .first = entry.step,
                      .last = has_begun ? 0 : 1,
                      .version = process_,
                      .step = entry.meeting};
  link.stream->send(0, head_of(setup), payload_of(job_.setup.bytes()));
}

/// Links::finish.
void WorkerProcess::finish(std::size_t server) {
  send({server, ~std::uint64_t{0}, {.kind = MessageKind::finish}});
  if (links_[server].stream) links_[server].stream->close({});
}

void WorkerProcess::send(Request request) {
  Link& link = links_[request.server];
  if (is_dead_ || !link.stream || !link.is_welcome) return;
  const Message& message = request.message;
  if (message.kind == MessageKind::push || message.kind == MessageKind::fetch)
    if (++link.under_way[message.block] > 1)
      job_.law(fmt::format("worker {} has {} pending requests of block {}", index_, link.under_way[message.block],
                           message.block));
  job_.world.note("worker sends", index_, static_cast<std::uint64_t>(message.kind) << 32 | message.block);
  job_.pushes += message.kind == MessageKind::push ? 1 : 0;
  link.stream->send(request.priority, head_of(message), message.body);
}

/// Links::receive.
void WorkerProcess::receive(std::size_t server, std::uint64_t life, Payload bytes) {
  Message message = message_of(std::move(bytes), false);
  Link& link = links_[server];
  if (link.life != life || is_dead_) return;
  job_.world.note("worker hears", index_, static_cast<std::uint64_t>(message.kind) << 32 | message.block);
  if (message.kind == MessageKind::refuse) {
    failure = std::string(reinterpret_cast<const char*>(message.body.bytes.data()), message.body.bytes.size());
    return;
  }
  if (message.kind == MessageKind::welcome) {
    link.is_welcome = true;
    link.welcome = message;
    newest_ = std::max(newest_, message.least);
    tables.receive(server, message);
    if (!has_begun) return welcomed();
    tables.repeat(server);
    if (has_left_) finish(server);
  } else if (link.is_welcome) {
    if (message.kind == MessageKind::weights) link.under_way[message.block] = 0;
    tables.receive(server, std::move(message));
  }
  if (has_begun) go_on();
}

/// Links::introduce, and Worker::start.
void WorkerProcess::welcomed() {
  if (!std::ranges::all_of(links_, [](const Link& link) { return link.welcome.has_value(); })) return;
  Entry corrected = entry_;
  for (const Link& link : links_) corrected.correct_by(*link.welcome);
  if (!may_begin(entry_, corrected, job_.setup.first_step)) {
    entry_ = corrected;
    for (std::size_t server = 0; server < links_.size(); ++server) greet(server);
    return;
  }
  if (index_ == 0 && corrected.step == 0) tables.offer();
  tables.begin(corrected);
  has_begun = true;
  for (Link& link : links_) link.under_way.clear();
  for (const Block& block : blocks_of(job_.setup)) links_[block.server].under_way[block.index] = 1;
  go_on();
}

void WorkerProcess::go_on() {
  if (is_held_ && tables.rows().has_room()) return compute();
  if (computes_ || has_left_ || is_dead_ || !are_pulled()) return;
  if (visit_ == Visit::none) tables.catch_up(newest_);
  if (!has_visited()) return;
  if (tables.clock() >= steps_) {
    if (!tables.finish()) return;
    for (std::size_t table = 0; table < weights.size(); ++table) tables.read(table);
    has_finished = has_left_ = true;
    job_.world.note("finished", index_);
    for (std::size_t server = 0; server < links_.size(); ++server)
      if (links_[server].is_welcome) finish(server);
    return;
  }
  tables.demand();
  for (std::size_t table = 0; table < weights.size(); ++table)
    if (!tables.may_read(table)) return;
  computes_ = true;
  for (std::size_t table = 0; table < weights.size(); ++table) tables.read(table);
  job_.check_read(index_);
  job_.world.in(job_.compute_time(index_), [this] { compute(); });
}

void WorkerProcess::compute() {
  if (is_dead_) return;
  if (machine.is_stopped()) return job_.world.at(machine.stopped_until(), [this] { compute(); });
  is_held_ = !tables.rows().has_room();
  if (is_held_) return;
  const UpdateStep at{job_.options.rate, static_cast<std::uint64_t>(tables.clock()) + 1};
  for (std::size_t table = weights.size(); table-- > 0;) {
    std::vector<float> gradient(weights[table].size());
    job_.compute_gradient(index_, table, gradient);
    tables.update(table, gradient, at);
  }
  push_rows();
  tables.end_step(at);
  ++made;
  computes_ = false;
  go_on();
}

}  // namespace syncopate::virtual_server
