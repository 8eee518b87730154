// bench_engine: what interpreting a plan costs, against a ring all-reduce written by hand on the same transport.
//
// Method: two ranks are two threads of this process, with one in-process link. Per size, blocks of k back-to-back
// calls, hand and plan taking turns, a barrier before each block; a block lasts as long as on its slower rank. Printed
// are median (min..max) per call, the ratio of the medians, and the median of the ratios of neighbouring blocks, which
// a change of the machine's speed during the run does not touch. The answers of both are compared bit by bit.
// Arguments: seconds per size (default 2).
#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "../contender/pattern.hpp"
#include "collective/engine/execute.hpp"
#include "engine/hand_ring.hpp"
#include "syncopate/tooling/units.hpp"
#include "transport/endpoint.hpp"

namespace syncopate::bench {
namespace {

constexpr int kRanks = 2;
constexpr int kPairs = 41;  // of neighbouring blocks
constexpr transport::Patience kPatience{std::chrono::milliseconds(1)};

/// The engine's rule for the size of a segment (src/collective/engine/execute.cpp).
std::size_t segment_bytes(std::size_t chunk_bytes) {
  return std::clamp<std::size_t>((chunk_bytes / 4 + 63) / 64 * 64, std::min<std::size_t>(chunk_bytes, 8 << 10),
                                 128 << 10);
}

/// One rank: its end of the link, its vector, both ways to reduce it.
class LinkEnd final {
 public:
  LinkEnd(transport::Endpoint& endpoint, std::size_t bytes)
      : links_(*endpoint.links),
        rank_(endpoint.rank),
        data_(bytes / sizeof(float)),
        hand_(links_, rank_, kRanks),
        program_(collective::plan::compile(
            plan_collective({.algorithm = "ring", .ranks = kRanks, .bytes = bytes})[static_cast<std::size_t>(rank_)])) {
  }

  void by_hand() { hand_.allreduce(data_, segment_bytes(data_.size() * sizeof(float) / kRanks), label(), kPatience); }

  void by_plan() {
    collective::engine::Execution execution(program_, {.data = std::span(data_), .reduction = {}, .label = label()},
                                            links_, scratch_);
    execution.advance();
    while (!execution.done()) execution.take(links_.poll(base::kNever, kPatience));
  }

  void ask() { pattern_.ask<float>(static_cast<std::uint32_t>(rank_), data_); }
  [[nodiscard]] bool right() const { return pattern_.right<float>(data_, {0, 0, data_.size()}, data_.size()); }

 private:
  transport::Label label() { return {.operation = ++operations_, .signature = 1}; }

  transport::Transport& links_;
  int rank_;
  contender::Pattern pattern_{"allreduce", "sum", kRanks, 0};
  std::vector<float> data_;
  std::uint64_t operations_ = 0;
  HandRing hand_;
  collective::plan::Program program_;
  collective::engine::Scratch scratch_;
};

struct Result {
  std::vector<double> hand_s, plan_s;  ///< per call, by pair of blocks
  bool right = true;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Both ranks' work on one size. `slowest` turns each rank's time into the slower one's.
class Duel final {
 public:
  Duel(std::size_t bytes, double budget_s) : endpoints_(transport::join_threads(kRanks, {})), budget_s_(budget_s) {
    for (transport::Endpoint& endpoint : endpoints_) ranks_.push_back(std::make_unique<LinkEnd>(endpoint, bytes));
  }

  Result run() {
    {
      std::jthread other([this] { run_rank(1); });  // runs on: the thread of rank 1
      run_rank(0);
    }
    return result_;
  }

 private:
  double slowest(int rank, double seconds) {
    times_[rank] = seconds;
    meeting_.arrive_and_wait();
    const double most = std::max(times_[0], times_[1]);
    meeting_.arrive_and_wait();
    return most;
  }

  double block(int rank, void (LinkEnd::*call)(), long calls) {
    meeting_.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < calls; ++i) ((*ranks_[static_cast<std::size_t>(rank)]).*call)();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    return slowest(rank, taken.count()) / static_cast<double>(calls);
  }

  void check(int rank, void (LinkEnd::*call)()) {
    LinkEnd& mine = *ranks_[static_cast<std::size_t>(rank)];
    mine.ask();
    meeting_.arrive_and_wait();
    (mine.*call)();
    const bool right = slowest(rank, mine.right() ? 0 : 1) == 0;
    if (rank == 0) result_.right = result_.right && right;
  }

  void run_rank(int rank) {
    check(rank, &LinkEnd::by_hand);
    check(rank, &LinkEnd::by_plan);
    const double once = std::max(block(rank, &LinkEnd::by_hand, 20), block(rank, &LinkEnd::by_plan, 20));
    const long calls = std::max(1L, static_cast<long>(budget_s_ / (2 * kPairs) / once));
    for (int pair = 0; pair < kPairs; ++pair) {
      const bool hand_first = pair % 2 == 0;
      const double first = block(rank, hand_first ? &LinkEnd::by_hand : &LinkEnd::by_plan, calls);
      const double second = block(rank, hand_first ? &LinkEnd::by_plan : &LinkEnd::by_hand, calls);
      if (rank != 0) continue;
      result_.hand_s.push_back(hand_first ? first : second);
      result_.plan_s.push_back(hand_first ? second : first);
    }
    check(rank, &LinkEnd::by_hand);
    check(rank, &LinkEnd::by_plan);
  }

  std::vector<transport::Endpoint> endpoints_;
  double budget_s_;
  std::vector<std::unique_ptr<LinkEnd>> ranks_;
  std::barrier<> meeting_{kRanks};
  double times_[kRanks] = {};
  Result result_;
};

std::string spread(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return fmt::format("{:.2f} ({:.2f}..{:.2f})", median(seconds) * 1e6, *least * 1e6, *most * 1e6);
}

int run_all(double budget_s) {
  bool right = true;
  fmt::print("{:>10}  {:>30}  {:>30}  {:>7}  {:>7}  answer\n", "bytes", "hand_us", "plan_us", "ratio", "paired");
  for (std::size_t bytes = 4 << 10; bytes <= 16 << 20; bytes *= 4) {
    const Result result = Duel(bytes, budget_s).run();
    std::vector<double> ratios;
    for (std::size_t i = 0; i < result.hand_s.size(); ++i) ratios.push_back(result.plan_s[i] / result.hand_s[i]);
    fmt::print("{:>10}  {:>30}  {:>30}  {:>7.4f}  {:>7.4f}  {}\n", format_bytes(static_cast<double>(bytes)),
               spread(result.hand_s), spread(result.plan_s), median(result.plan_s) / median(result.hand_s),
               median(ratios), result.right ? "right" : "WRONG");
    right = right && result.right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace syncopate::bench

int main(int argc, char** argv) { return syncopate::bench::run_all(argc > 1 ? std::atof(argv[1]) : 2); }
