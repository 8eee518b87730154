// Job: the passes of the workers, and the clocks of every block on both sides.
#include "simulate/server/job.hpp"

#include <algorithm>
#include <optional>

namespace syncopate::simulate::server {

namespace {

using syncopate::server::Clock;
using syncopate::server::Moment;

/// A block as one worker has it (server/table/worker_block).
struct Copy {
  Clock own = 0, fetched = 0, wanted = 0, sent = 0;
  double significance = 0;
  bool is_asking = false;
};

/// The worker's next layer. After the last layer of the forward pass the backward pass starts with the same layer.
struct Worker {
  Clock step = 0;
  std::size_t layer = 0;
  bool is_waiting = false;
  Work work;
  std::vector<Copy> copies;
  std::vector<std::vector<std::size_t>> blocks;  ///< by layer, in the order in which it sends them
};

/// A block on its server. It owes an answer to each worker with a value in `asked`.
struct Kept {
  std::vector<Clock> applied, told;  ///< by worker: steps applied, and steps reported to it as wanted
  std::vector<std::optional<Clock>> asked;
  [[nodiscard]] Clock least() const { return *std::ranges::min_element(applied); }
};

/// One request; for a fetch, `last` adds no steps to those that the server has.
struct Request {
  std::size_t worker = 0, block = 0;
  Clock last = 0, least = 0;
};

class Job final {
 public:
  Job(const Scene& scene, const Workload& workload, const Ports::Links& links, Clock steps)
      : scene_(scene),
        workload_(workload),
        gamma_s_per_byte_(links.inter.gamma_s_per_byte),
        steps_(steps),
        ports_(events_, links),
        workers_(scene.workers),
        kept_(scene.blocks.size(), {std::vector<Clock>(scene.workers), std::vector<Clock>(scene.workers), {}}),
        busy_until_s_(scene.servers, 0) {
    for (Kept& kept : kept_) kept.asked.resize(scene.workers);
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      workers_[worker].copies.resize(scene.blocks.size());
      workers_[worker].blocks = in_turns(worker);
    }
    course_.ended_s.resize(static_cast<std::size_t>(steps));
    course_.travelled.resize(static_cast<std::size_t>(steps));
  }

  Course run() && {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) begin_step(worker);
    events_.run();
    return std::move(course_);
  }

 private:
  /// Each layer's blocks in the order of servers, starting after the worker's own number (server/table).
  [[nodiscard]] std::vector<std::vector<std::size_t>> in_turns(std::size_t worker) const {
    std::vector<std::vector<std::size_t>> turns(scene_.layers);
    for (std::size_t block = 0; block < scene_.blocks.size(); ++block)
      turns[scene_.blocks[block].layer].push_back(block);
    const auto place = [&](std::size_t block) {
      const auto& [layer, server, part, update, answer] = scene_.blocks[block];
      return std::pair(part, (server + scene_.servers - worker % scene_.servers) % scene_.servers);
    };
    for (auto& blocks : turns) std::ranges::sort(blocks, {}, place);
    return turns;
  }

  void begin_step(std::size_t index) {
    Worker& worker = workers_[index];
    if (worker.step == steps_) return;
    worker.work = workload_.of(static_cast<std::uint64_t>(worker.step), static_cast<std::uint32_t>(index));
    worker.layer = 0;
    forward(index);
  }

  [[nodiscard]] bool may_compute(const Worker& worker) const {
    return std::ranges::all_of(worker.blocks[worker.layer], [&](std::size_t block) {
      return !must_fetch(scene_.rule, moment(worker.copies[block]));
    });
  }

  void forward(std::size_t index) {
    Worker& worker = workers_[index];
    if (!may_compute(worker)) {
      worker.is_waiting = true;
      for (const auto& blocks : worker.blocks)
        for (const std::size_t block : blocks) ask(index, block);
      return;
    }
    worker.is_waiting = false;
    events_.at(events_.now_s() + worker.work.forward_s[worker.layer], [this, index, &worker] {
      if (++worker.layer < scene_.layers) return forward(index);
      backward(index);
    });
  }

  void backward(std::size_t index) {
    Worker& worker = workers_[index];
    --worker.layer;
    events_.at(events_.now_s() + worker.work.backward_s[worker.layer], [this, index, &worker] {
      for (const std::size_t block : worker.blocks[worker.layer]) {
        ++worker.copies[block].own;
        worker.copies[block].significance += scene_.significance;
        ask(index, block);
      }
      if (worker.layer > 0) return backward(index);
      const auto ended = static_cast<std::size_t>(worker.step++);
      course_.ended_s[ended] = events_.now_s();  // events come in order of time, so the slowest worker's time remains
      course_.travelled[ended] = travelled_;
      begin_step(index);
    });
  }

  [[nodiscard]] static Moment moment(const Copy& copy) {
    return {.own = copy.own,
            .fetched = copy.fetched,
            .wanted = copy.wanted,
            .sent = copy.sent,
            .significance = copy.significance};
  }

  /// Models WorkerBlock::request.
  void ask(std::size_t index, std::size_t number) {
    Copy& copy = workers_[index].copies[number];
    const bool must = must_fetch(scene_.rule, moment(copy));
    if (copy.is_asking || (!must && copy.sent == copy.own) || !travels(scene_.rule, moment(copy))) return;
    const Block& block = scene_.blocks[number];
    const bool is_push = copy.sent < copy.own;
    const Request request{index, number, copy.own, must ? copy.own - *scene_.rule.staleness : 0};
    const double bytes = is_push ? block.update_bytes : 0;
    travelled_.pushed_bytes += bytes;
    travelled_.pushes += is_push ? 1 : 0;
    copy.sent = copy.own;
    copy.significance = 0;
    copy.is_asking = true;
    ports_.send({.from = scene_.host_of_worker[index],
                 .to = scene_.host_of_server[block.server],
                 .stream = stream_of(index, block.server),
                 .priority = priority_of(block),
                 .bytes = bytes,
                 .arrives = [this, request, bytes] { reduce(request, bytes); }});
  }

  [[nodiscard]] std::uint64_t priority_of(const Block& block) const {
    return scene_.flow == Flow::front_first ? block.layer : 0;
  }

  [[nodiscard]] std::size_t stream_of(std::size_t worker, std::size_t server) const {
    return worker * scene_.servers + server;
  }

  /// A server reduces one update after another.
  void reduce(const Request& request, double bytes) {
    double& until_s = busy_until_s_[scene_.blocks[request.block].server];
    until_s = std::max(until_s, events_.now_s()) + bytes * gamma_s_per_byte_;
    events_.at(until_s, [this, request] {
      Kept& kept = kept_[request.block];
      kept.applied[request.worker] = request.last;
      kept.asked[request.worker] = request.least;
      answer(request.block);
    });
  }

  /// Starts after its own number, as workers do, so that servers do not all answer the same worker first.
  void answer(std::size_t number) {
    Kept& kept = kept_[number];
    const Clock least = kept.least();
    Clock wanted = 0;
    for (std::size_t turn = 0; turn < workers_.size(); ++turn) {
      const std::size_t index = (scene_.blocks[number].server + turn) % workers_.size();
      if (!kept.asked[index]) continue;
      if (*kept.asked[index] > least) {
        wanted = std::max(wanted, *kept.asked[index]);
        continue;
      }
      kept.asked[index].reset();
      reply(index, number, least);
    }
    for (std::size_t index = 0; index < workers_.size(); ++index)
      if (kept.applied[index] < wanted && kept.told[index] < wanted) want(index, number, wanted);
  }

  void reply(std::size_t index, std::size_t number, Clock least) {
    const Block& block = scene_.blocks[number];
    travelled_.pulled_bytes += block.answer_bytes;
    ports_.send({.from = scene_.host_of_server[block.server],
                 .to = scene_.host_of_worker[index],
                 .stream = scene_.workers * scene_.servers + stream_of(index, block.server),
                 .priority = priority_of(block),
                 .bytes = block.answer_bytes,
                 .arrives = [this, index, number, least] {
                   Copy& copy = workers_[index].copies[number];
                   copy.is_asking = false;
                   copy.fetched = std::max(copy.fetched, least);
                   go_on(index, number);
                 }});
  }

  /// In lockstep every worker sends in every step, so no request for updates is needed.
  void want(std::size_t index, std::size_t number, Clock wanted) {
    kept_[number].told[index] = wanted;
    if (scene_.rule.staleness == Clock{0}) return;
    const Block& block = scene_.blocks[number];
    ports_.send({.from = scene_.host_of_server[block.server],
                 .to = scene_.host_of_worker[index],
                 .stream = scene_.workers * scene_.servers + stream_of(index, block.server),
                 .priority = 0,
                 .bytes = 0,
                 .arrives = [this, index, number, wanted] {
                   Copy& copy = workers_[index].copies[number];
                   copy.wanted = std::max(copy.wanted, wanted);
                   go_on(index, number);
                 }});
  }

  /// Called when something has arrived. A worker that computes sends nothing before the end of its step.
  void go_on(std::size_t index, std::size_t number) {
    if (!workers_[index].is_waiting) return;
    ask(index, number);
    if (may_compute(workers_[index])) forward(index);
  }

  const Scene& scene_;
  const Workload& workload_;
  const double gamma_s_per_byte_;
  const Clock steps_;
  Events events_;
  Ports ports_;
  std::vector<Worker> workers_;
  std::vector<Kept> kept_;            ///< by block
  std::vector<double> busy_until_s_;  ///< by server
  Travelled travelled_;
  Course course_;
};

}  // namespace

Course run_job(const Scene& scene, const Workload& workload, const Ports::Links& links, int steps) {
  return Job(scene, workload, links, steps).run();
}

}  // namespace syncopate::simulate::server
