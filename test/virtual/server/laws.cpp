// The laws of a job's history: steps are as fresh as the model guarantees, and every update counts exactly once.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "server/rows/row_table.hpp"
#include "server/sent_bytes.hpp"
#include "virtual/server/job.hpp"

namespace syncopate::server {

namespace {

constexpr Duration kJobTime = 30s;  ///< virtual time for all workers to finish: longer than all stops

struct Images {
  std::map<std::uint32_t, std::vector<std::byte>> blocks;
  std::map<std::uint32_t, std::vector<std::vector<std::byte>>> rows;  ///< of a table, by part
};

void keep(Images& images, const Record& record) {
  if (const auto* const of = std::get_if<change::Image>(&record.change))
    images.blocks[of->block].assign(of->image.bytes.begin(), of->image.bytes.end());
  if (const auto* const of = std::get_if<change::ImageOfRows>(&record.change))
    images.rows[of->table].emplace_back(of->image.bytes.begin(), of->image.bytes.end());
}

/// Takes the tables that a keeper hands over to its owner, which claims the server once more and without tables.
class Claimant final : public streams::Stream {
 public:
  explicit Claimant(Images& images) : images_(images) {}
  void end() override {}
  void close(std::string_view) override {}
  [[nodiscard]] const streams::Identity& peer() const noexcept override { return peer_; }
  void send(std::uint64_t, base::ConstBytes head, Payload body) override {
    RelayMessage message = relay_message_of(joined(head, body));
    auto* const part = std::get_if<RecordPart>(&message);
    Record record;
    if (part != nullptr && reader_.add(std::move(*part), record)) keep(images_, record);
  }

 private:
  Images& images_;
  RecordReader reader_{kMemory};
  const streams::Identity peer_{.role = streams::Identity::Role::server};
};

Images replica_of(ReplicaKeeper& keeper, std::uint64_t owner) {
  Images images;
  const auto events = keeper.accept(std::make_unique<Claimant>(images));
  events.received(sent_bytes(RelayMessage(Claim{.process = owner, .is_empty = true})));
  static_cast<void>(keeper.turn());
  return images;
}

ServerBlock restored(Job& job, const Block& block, const Images& images) {
  ServerBlock kept(job.rules, block, job.setup.tables[block.table].spared);
  const auto image = images.blocks.find(block.index);
  if (image == images.blocks.end())
    job.law(fmt::format("server {} or its replica lacks block {}", block.server, block.index));
  else
    kept.restore(image->second);
  return kept;
}

/// Compares restored copies: without a codec of answers an image also holds whether a copy for answers exists.
bool are_equal(const ServerBlock& one, const ServerBlock& other) {
  return std::ranges::equal(one.image().bytes, other.image().bytes);
}

/// The residual of each worker's codec in a block, in updates of 1.
double left_out_of(const Job& job, const Block& block, std::size_t i) {
  double sum = 0;
  if (!block.is_coded) return 0;
  for (const auto& worker : job.workers) {
    const auto kept = worker->tables().left_out();
    float value = 0;
    std::memcpy(&value, kept[block.table].data() + (block.elements.begin + i) * sizeof(float), sizeof value);
    sum += job.rules.in_lockstep() ? -value / static_cast<double>(job.setup.workers) : value;
  }
  return sum;
}

void check_weights(Job& job, const Block& block, const ServerBlock& kept) {
  for (std::size_t i = 0; i < kept.values().size(); ++i) {
    const std::size_t owner = (block.elements.begin + i) % job.setup.workers;
    const WorkerProcess& worker = *job.workers[owner];
    const double has = kept.values()[i] + (worker.is_dead() ? 0 : left_out_of(job, block, i));
    const auto made = static_cast<double>(job.begun_at + worker.made);
    // Without lockstep a snapshot has at least the updates of its step.
    const bool is_least = job.begun_at > 0 && !job.rules.in_lockstep();
    const bool is_right = is_least ? has >= made : worker.is_dead() ? has <= made : has == made;
    if (!is_right)
      return job.law(fmt::format("table {} element {}: {} of worker {}'s {} updates are applied", block.table,
                                 block.elements.begin + i, has, owner, made));
  }
}

/// Every row has all workers' updates, once each: those of a dead process, or of one that was refused, that have left.
void check_rows(Job& job, std::size_t server, const Images& images) {
  const std::vector<RowRules> rules = row_rules_of(job.setup.rows, {});
  const bool has_dead =
      !job.replaced.empty() || std::ranges::any_of(job.workers, [](const auto& worker) { return worker->is_dead(); });
  for (std::uint32_t index = 0; index < rules.size(); ++index) {
    RowMemory memory(kMemory);
    RowTable table(rules[index], job.workers.size(), memory);
    if (!images.rows.contains(index)) return job.law(fmt::format("server {} lacks table {} of rows", server, index));
    std::uint64_t part = 0;
    for (const auto& image : images.rows.at(index)) table.restore(image, part++);
    for (std::uint64_t id = 0; id < 100; ++id) {
      if (server_of_row(id, job.servers.size()) != server) continue;
      float has = 0;
      std::memcpy(&has, table.pull(std::as_bytes(std::span(&id, 1))).bytes.data(), sizeof has);
      const auto made = static_cast<float>(job.pushes_of(index, id));
      if (has_dead ? has > made : has != made)
        job.law(fmt::format("row {} of table {}: {} of {} updates are applied", id, index, has, made));
    }
  }
}

}  // namespace

void Job::check_read(std::size_t index) {
  const WorkerProcess& worker = *workers[index];
  const Clock clock = worker.clock();
  if (options.reads) options.reads(index, clock, worker.weights);
  if (may_give_up || options.gradient) return;
  if (rules.in_lockstep()) {
    const auto [first, is_first] = seen.emplace(clock, worker.weights);
    if (!is_first && first->second != worker.weights)
      law(fmt::format("worker {} computes step {} with other weights", index, clock));
  }
  if (setup.coding.codec != "none" || setup.answers != "none" || !rules.consistency.staleness) return;
  if (rules.consistency.last_step) return;  // its bound is its own
  for (const auto& table : worker.weights)
    for (std::size_t i = 0; i < table.size(); ++i) {
      const std::size_t owner = i % setup.workers;
      const auto least = static_cast<float>(owner == index ? clock : clock - *rules.consistency.staleness);
      const auto made = begun_at + workers[owner]->made;
      const auto most = rules.in_lockstep() ? static_cast<float>(clock)
                        : begun_at > 0      ? std::numeric_limits<float>::infinity()
                                            : static_cast<float>(made);
      if (table[i] < least || table[i] > most)
        return law(fmt::format("worker {} computes step {} with {} of worker {}'s updates; allowed: {} to {}", index,
                               clock, table[i], owner, least, most));
    }
}

void Job::check_end() {
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const WorkerProcess& worker = *workers[i];
    if (!worker.failure.empty()) law(fmt::format("worker {} fails: {}", i, worker.failure));
    if (!worker.is_dead() && !worker.has_finished)
      law(fmt::format("worker {} waits at step {} of {}", i, worker.clock(), steps));
    if (!may_give_up && worker.has_finished && worker.weights != workers[0]->weights)
      law(fmt::format("worker {} ends with other weights than worker 0", i));
  }
  for (const auto& process : replaced)
    if (!process->is_dead() && !process->is_refused())
      law(fmt::format("a process that was replaced is still a worker: '{}'", process->failure));
  if (!broken.empty()) return;
  for (std::size_t s = 0; s < servers.size(); ++s) {
    Images own;
    if (!servers[s]) {
      law("a server was not replaced");
      continue;
    }
    static_cast<void>(servers[s]->tables().hand_over([&](const Record& record) { keep(own, record); }));
    Images replicas_images;
    if (replicas > 0)
      replicas_images = replica_of(*servers[(s + 1) % servers.size()]->shell.replica_keeper(), servers[s]->process);
    check_rows(*this, s, own);
    if (replicas > 0 && own.rows != replicas_images.rows)
      law(fmt::format("rows of server {} and of its replica differ", s));
    for (const Block& block : blocks_of(setup)) {
      if (block.server != s) continue;
      const ServerBlock kept = restored(*this, block, own);
      if (replicas > 0 && !are_equal(kept, restored(*this, block, replicas_images)))
        law(fmt::format("block {} of server {} and of its replica differ", block.index, s));
      if (!replaced.empty()) continue;                   // the updates of one worker are those of two processes
      if (is_restarted && block.is_coded) continue;      // residuals end with their processes
      if (begun_at > 0 && may_give_up) continue;         // a snapshot lacks updates of a worker that was given up
      if (rules.in_lockstep() && may_give_up) continue;  // a step that ended without a worker averages over the others
      check_weights(*this, block, kept);
    }
  }
}

ServerHistory server_history_of(std::uint64_t seed, bool prints) {
  Job job(seed, prints);
  try {
    job.run(kJobTime);
    job.check_end();
  } catch (const std::exception& error) {
    job.law(fmt::format("threw {}", error.what()));
  }
  return {job.scenario, job.world.digest(), job.broken};
}

}  // namespace syncopate::server
