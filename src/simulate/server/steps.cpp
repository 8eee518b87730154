// Steps: the passes of the workers, and the messages between production's tables on virtual ports.
#include "simulate/server/steps.hpp"

#include <algorithm>
#include <memory>

#include "server/table/server_tables.hpp"
#include "server/table/worker_tables.hpp"

namespace syncopate::simulate::server {

namespace {

using syncopate::server::Clock;
using syncopate::server::Hello;
using syncopate::server::Outgoing;
using syncopate::server::Push;
using syncopate::server::Request;
using syncopate::server::ServerMessage;
using syncopate::server::ServerTables;
using syncopate::server::Weights;
using syncopate::server::Welcome;
using syncopate::server::WorkerMessage;
using syncopate::server::WorkerTables;

/// The worker's next layer. After the last layer of the forward pass the backward pass starts with the same layer.
struct Worker {
  std::unique_ptr<WorkerTables> tables{};
  std::size_t layer = 0;
  bool is_waiting = false;
  double lost_s = 0;  ///< that coding has taken from computing, which is to be made up for
  Work work{};
};

/// The core that codes and reduces in a process: one block after another.
class Core final {
 public:
  /// Returns the time at which work of `seconds` ends that is due now.
  double work(double now_s, double seconds) { return until_s_ = std::max(until_s_, now_s) + seconds; }

 private:
  double until_s_ = 0;
};

/// The state of a block on its server, whose encoded answer all workers get.
struct BlockState {
  bool has_changed = false;  ///< since the last encoding
  double encoded_s = 0;      ///< the end of that
};

class ServerReplay final {
 public:
  ServerReplay(const Scene& scene, const Workload& workload, const Ports::Links& links, Clock steps)
      : scene_(scene),
        workload_(workload),
        gamma_s_per_byte_(links.inter.gamma_s_per_byte),
        steps_(steps),
        ports_(events_, links),
        workers_(scene.setup.workers),
        worker_cores_(scene.setup.workers),
        server_cores_(scene.setup.servers) {
    for (const std::vector<BlockBytes>& blocks : scene.bytes) states_.emplace_back(blocks.size());
    for (std::size_t server = 0; server < scene.setup.servers; ++server)
      servers_.push_back(std::make_unique<ServerTables>(
          server, scene.no_values, [this, server](Outgoing outgoing) { reply(server, std::move(outgoing)); },
          scene.setup.catalogue, std::make_unique<EventClock>(events_)));
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
      workers_[worker].tables = std::make_unique<WorkerTables>(
          scene.setup, worker, scene.no_values, [this, worker](Request request) { send(worker, std::move(request)); });
    times_.ended_s.resize(static_cast<std::size_t>(steps));
    times_.travelled.resize(static_cast<std::size_t>(steps));
  }

  RunTimes run() && {
    set_up();
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) begin_step(worker);
    events_.run();
    return std::move(times_);
  }

 private:
  /// Every worker holds the first weights afterwards.
  void set_up() {
    const syncopate::server::Payload setup = syncopate::server::payload_of(scene_.setup.bytes());
    for (std::size_t worker = 0; worker < workers_.size(); ++worker)
      for (const auto& server : servers_) server->receive(worker, Hello{.is_new = true, .setup = setup});
    workers_.front().tables->offer();
    for (Worker& worker : workers_) worker.tables->begin({});
    events_.run();
    is_set_up_ = true;
  }

  void begin_step(std::size_t index) {
    Worker& worker = workers_[index];
    const Clock step = worker.tables->clock();
    if (step == steps_) return;
    worker.work = workload_.of(static_cast<std::uint64_t>(step), static_cast<std::uint32_t>(index));
    worker.layer = 0;
    forward(index);
  }

  [[nodiscard]] bool has_table(std::size_t layer) const { return layer < scene_.setup.tables.size(); }

  void forward(std::size_t index) {
    Worker& worker = workers_[index];
    worker.is_waiting = has_table(worker.layer) && !worker.tables->may_read(worker.layer);
    if (worker.is_waiting) {
      worker.lost_s = 0;
      return worker.tables->demand();
    }
    if (has_table(worker.layer)) worker.tables->read(worker.layer);
    compute(worker, worker.work.forward_s[worker.layer], [this, index, &worker] {
      if (++worker.layer < scene_.layers) return forward(index);
      backward(index);
    });
  }

  void compute(Worker& worker, double seconds, std::function<void()> then) {
    events_.at(events_.now_s() + seconds, [this, &worker, then = std::move(then)]() mutable {
      const double lost_s = std::exchange(worker.lost_s, 0);
      if (lost_s > 0) return compute(worker, lost_s, std::move(then));
      then();
    });
  }

  /// The time at which a worker has coded for `seconds`, during which it does not compute.
  double code(std::size_t index, double seconds) {
    Worker& worker = workers_[index];
    if (!worker.is_waiting) worker.lost_s += seconds;
    return worker_cores_[index].work(events_.now_s(), seconds);
  }

  void backward(std::size_t index) {
    Worker& worker = workers_[index];
    --worker.layer;
    compute(worker, worker.work.backward_s[worker.layer], [this, index, &worker] {
      const auto step = static_cast<std::size_t>(worker.tables->clock());
      const UpdateStep at{.rate = 1, .step = step + 1};
      if (has_table(worker.layer)) worker.tables->update(worker.layer, std::span<float>{}, at);
      if (worker.layer > 0) return backward(index);
      worker.tables->end_step(at);
      times_.ended_s[step] = events_.now_s();  // events come in order of time, so the slowest worker's time remains
      times_.travelled[step] = travelled_;
      begin_step(index);
    });
  }

  void send(std::size_t worker, Request request) {
    const std::size_t server = request.server;
    const auto* const push = std::get_if<Push>(&request.message);
    const BlockBytes sent = push != nullptr ? scene_.bytes[server][push->block] : BlockBytes{};
    travelled_.pushed_bytes += sent.update;
    travelled_.pushes += push != nullptr ? 1 : 0;
    const double taken_s = sent.values * scene_.update_coding.decode_s_per_byte + sent.update * gamma_s_per_byte_;
    Parcel parcel{.from = scene_.host_of_worker[worker],
                  .to = scene_.host_of_server[server],
                  .stream = stream_of(worker, server),
                  .priority = request.priority,
                  .bytes = sent.update,
                  .arrives = [this, worker, server, taken_s, message = std::move(request.message)] {
                    events_.at(server_cores_[server].work(events_.now_s(), taken_s),
                               [=, this] { receive(worker, server, message); });
                  }};
    const double encode_s = sent.values * scene_.update_coding.encode_s_per_byte;
    travel_at(encode_s > 0 ? code(worker, encode_s) : 0, std::move(parcel));
  }

  void receive(std::size_t worker, std::size_t server, const WorkerMessage& message) {
    if (const auto* const push = std::get_if<Push>(&message)) states_[server][push->block].has_changed = true;
    servers_[server]->receive(worker, message);
  }

  /// The time at which the answer is encoded: once for all workers, unless an update has come since.
  [[nodiscard]] double encoded_s(std::size_t server, std::size_t block) {
    BlockState& state = states_[server][block];
    if (std::exchange(state.has_changed, false))
      state.encoded_s = server_cores_[server].work(
          events_.now_s(), scene_.bytes[server][block].values * scene_.answer_coding.encode_s_per_byte);
    return state.encoded_s;
  }

  void reply(std::size_t server, Outgoing outgoing) {
    const std::size_t worker = outgoing.worker;
    if (std::holds_alternative<Welcome>(outgoing.message)) return;
    const auto* const answer = std::get_if<Weights>(&outgoing.message);
    const bool has_values = answer != nullptr && is_set_up_;
    const BlockBytes sent = has_values ? scene_.bytes[server][answer->block] : BlockBytes{};
    travelled_.pulled_bytes += sent.answer;
    const bool is_coded = has_values && scene_.answer_coding.encode_s_per_byte > 0;
    const double leaves_s = is_coded ? encoded_s(server, answer->block) : 0;
    const double decode_s = sent.values * scene_.answer_coding.decode_s_per_byte;
    travel_at(leaves_s, {.from = scene_.host_of_server[server],
                         .to = scene_.host_of_worker[worker],
                         .stream = scene_.setup.workers * scene_.setup.servers + stream_of(worker, server),
                         .priority = outgoing.priority,
                         .bytes = sent.answer,
                         .arrives = [this, worker, server, decode_s, message = std::move(outgoing.message)] {
                           if (decode_s <= 0) return take(worker, server, message);
                           events_.at(code(worker, decode_s), [=, this] { take(worker, server, message); });
                         }});
  }

  void travel_at(double leaves_s, Parcel parcel) {
    if (leaves_s <= events_.now_s()) return travel(std::move(parcel));
    events_.at(leaves_s, [this, moved = std::move(parcel)]() mutable { travel(std::move(moved)); });
  }

  void travel(Parcel parcel) {
    if (!is_set_up_) return events_.at(events_.now_s(), std::move(parcel.arrives));
    ports_.send(std::move(parcel));
  }

  [[nodiscard]] std::size_t stream_of(std::size_t worker, std::size_t server) const {
    return worker * scene_.setup.servers + server;
  }

  /// A worker that computes sends nothing before the end of its layer.
  void take(std::size_t index, std::size_t server, const ServerMessage& message) {
    Worker& worker = workers_[index];
    worker.tables->receive(server, message);
    if (!worker.is_waiting) return;
    worker.tables->demand();
    if (worker.tables->may_read(worker.layer)) forward(index);
  }

  const Scene& scene_;
  const Workload& workload_;
  const double gamma_s_per_byte_;
  const Clock steps_;
  Events events_;
  Ports ports_;
  std::vector<std::unique_ptr<ServerTables>> servers_;
  std::vector<Worker> workers_;
  std::vector<Core> worker_cores_, server_cores_;
  std::vector<std::vector<BlockState>> states_;  ///< by server and block
  bool is_set_up_ = false;
  Travelled travelled_;
  RunTimes times_;
};

}  // namespace

RunTimes run_steps(const Scene& scene, const Workload& workload, const Ports::Links& links, int steps) {
  return ServerReplay(scene, workload, links, steps).run();
}

}  // namespace syncopate::simulate::server
