// Controller of a benchmark: who takes part, in which order they run, and what is shown at the end.
#include "bench/controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "bench/contenders.hpp"
#include "bench/rows.hpp"
#include "bench/stage.hpp"
#include "bench/worker.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {
namespace {

void print(const Rows& rows, const Task& task, const Session& session) {
  if (session.json) {
    for (const nlohmann::json& row : rows.json()) print_row(row);
    return;
  }
  const std::string transport = rows.transport();
  print_text("{} {} {}, {} ranks{}{}: {} rounds, contenders interleaved; time per call, slowest rank\n",
             name_of(task.collective), name_of(task.dtype), name_of(task.op), task.ranks,
             transport.empty() ? "" : " over " + transport,
             task.lab.empty() ? "" : fmt::format(", {} on each host, ports of {}", task.ranks_per_host, task.lab),
             task.rounds);
  print_text("{}", rows.table());
}

int exit_code(const Rows& rows, bool all_ran) { return rows.all_correct() && all_ran ? 0 : 1; }

/// The contenders that run. A contender given by name must be able to; of "all", those that are not are left out, and
/// the reason is logged.
std::vector<std::string> entrants(const Task& task, const Session& session) {
  std::vector<std::string> names;
  for (const std::string& name : task.contenders) {
    const auto reason = hindrance(name, task, session.program);
    if (!reason) {
      names.push_back(name);
      continue;
    }
    if (!task.all_contenders) throw Misuse(fmt::format("contender {} cannot take part: {}", name, *reason));
    session.log.write(LogLevel::warning, fmt::format("without contender {}: {}", name, *reason));
  }
  return names;
}

int run_in_this_job(const Task& task, const Session& session) {
  if (!task.all_contenders && task.contenders != std::vector<std::string>{"ours"})
    throw Misuse("inside `syncopate run` only --contenders ours is possible; start the others with `syncopate bench`");
  Rows rows(task.bits_per_s, task.ranks_per_host);
  if (run_in_job(task, rows)) print(rows, task, session);
  return exit_code(rows, true);
}

/// Runs all rounds; a contender that fails is left out of the following ones.
class Rounds final {
 public:
  Rounds(const Task& task, const Session& session, Rows& rows)
      : task_(task), session_(session), rows_(rows), entrants_(entrants(task, session)), progress_(session, "bench") {}

  /// The signal that stopped it; 0: none.
  int run() {
    progress_.show("preparing");
    Stage stage(task_, session_);
    for (int round = 0; round < task_.rounds; ++round) {
      std::vector<std::string> order = entrants_;
      // Each round begins with another contender, so that none always runs first or always after the same one.
      if (!order.empty())
        std::rotate(order.begin(), order.begin() + round % static_cast<int>(order.size()), order.end());
      for (const std::string& name : order)
        if (const int signal = run_one(stage, name, round); signal != 0) return signal;
    }
    return 0;
  }
  [[nodiscard]] bool all_ran() const { return all_ran_; }

 private:
  int run_one(Stage& stage, const std::string& name, int round) {
    const std::string where = fmt::format("round {}/{}, {}", round + 1, task_.rounds, name);
    progress_.show(where);
    std::size_t count = 0;
    const Outcome outcome = stage.run(name, [&](const std::string& line) {
      if (rows_.add(line)) progress_.show(fmt::format("{}, {} rows", where, ++count));
    });
    if (outcome.signal != 0) return outcome.signal;
    // The measurement ends with a contender's last row: MPICH may hang at its exit.
    if (count == rows_of(name, task_)) return 0;
    progress_.clear();
    session_.log.write(LogLevel::error, fmt::format("contender {} failed in round {} after {} rows: {}", name,
                                                    round + 1, count, outcome.words));
    std::erase(entrants_, name);
    all_ran_ = false;
    return 0;
  }

  const Task& task_;
  const Session& session_;
  Rows& rows_;
  std::vector<std::string> entrants_;
  Progress progress_;
  bool all_ran_ = true;
};

}  // namespace

int run_benchmark(const Request& request, const Session& session) {
  const int job = job_ranks();
  const Task task = task_of(request, job);
  if (job > 0) return run_in_this_job(task, session);
  Rows rows(task.bits_per_s, task.ranks_per_host);
  bool all_ran = true;
  {
    Rounds rounds(task, session, rows);
    if (const int signal = rounds.run(); signal != 0) return 128 + signal;
    all_ran = rounds.all_ran();
  }
  if (rows.empty()) throw SystemFailure("no contender finished a single row");
  print(rows, task, session);
  return exit_code(rows, all_ran);
}

}  // namespace syncopate::tools::bench
