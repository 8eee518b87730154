// Strike: the random draws, and the judgement of the survivors' errors.
#include "fault/strike.hpp"

#include <array>
#include <thread>

#include "syncopate/collective.hpp"

namespace syncopate::test {

namespace {

constexpr int kLeavesAfter = 3, kCallsPerStep = 3;

/// Every rank but the leaver passes a vector to the next one.
void pass_round(Group& group, const Strike& strike, int step) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != strike.leaver) ranks.push_back(rank);
  const auto own = static_cast<std::size_t>(std::ranges::find(ranks, group.rank()) - ranks.begin());
  const int next = ranks[(own + 1) % ranks.size()], before = ranks[(own + ranks.size() - 1) % ranks.size()];
  const Inputs inputs{mixed(strike.seed + static_cast<std::uint64_t>(step)), DType::f32, Values::whole};
  std::vector<float> out(1 + inputs.key % 50'000), in(out.size());
  fill(std::span(out), inputs, group.rank());
  exchange(group, {next, std::span(out)}, {before, std::span(in)});
  if (!is_unchanged(std::span(in), inputs, before)) throw WrongValue("a message is not what was sent");
}

void make_calls(Group& group, const Strike& strike, int step) {
  if (strike.leaver >= 0 && step >= kLeavesAfter) return pass_round(group, strike, step);
  perform(group, {mixed(strike.seed + static_cast<std::uint64_t>(step)), kCallsPerStep, strike.world},
          [](const std::string&, std::uint64_t) {});
}

/// The flaw in a survivor's ending; empty if there is none.
std::string flaw_of(const Strike& strike, int rank, const Ending& ending) {
  const std::string kind = ending.kind;
  if (rank == strike.leaver && kind == "none") return {};
  if (kind == "PeerLost" && strike.strikes(ending.peer)) return {};
  return fmt::format("rank {}: {}, blames {}: {}", rank, kind, ending.peer, ending.message);
}

}  // namespace

Strike draw_strike(std::uint64_t seed, int signal) {
  Draw draw(seed);
  Strike strike{.seed = seed, .signal = signal, .ranks = 2 + static_cast<int>(draw.below(4))};
  strike.transport = draw.pick(std::array{"tcp", "shm"});
  strike.leaver = strike.ranks > 3 && draw.chance(15) ? 1 : -1;
  std::vector<int> ranks;
  for (int rank = 0; rank < strike.ranks; ++rank)
    if (rank != strike.leaver) ranks.push_back(rank);
  draw.shuffle(ranks);
  const std::size_t count = ranks.size() > 2 && draw.chance(20) ? 2 : 1;
  strike.victims.assign(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(count));
  strike.steps = 1 + static_cast<int>(draw.below(5));
  strike.pause_us = static_cast<int>(draw.below(4000));
  strike.apart_us = static_cast<int>(draw.below(3000));
  strike.world = {strike.ranks, 1, draw.pick(std::array<std::size_t, 3>{1000, 50'000, 400'000}), false, true};
  return strike;
}

std::string text_of(const Strike& strike) {
  return fmt::format("{} ranks over {}, signal {} to {} after {} steps and {} us{}", strike.ranks, strike.transport,
                     strike.signal, fmt::join(strike.victims, " and "), strike.steps, strike.pause_us,
                     strike.leaver < 0 ? "" : ", while rank 1 leaves");
}

Outcome outcome_of(const Strike& strike) {
  JobOptions options{.transport = strike.transport,
                     .leaves = [&](int rank, int step) { return rank == strike.leaver && step == kLeavesAfter; }};
  if (strike.signal == SIGSTOP) options.silence = kSilence;
  const Job job(
      strike.ranks, [&](Group& group, int step) { make_calls(group, strike, step); }, options);
  int witness = 0;
  while (strike.strikes(witness) || witness == strike.leaver) ++witness;
  Outcome outcome;
  if (!job.await_steps(witness, strike.steps)) outcome.flaws.emplace_back("the job failed before the strike");
  std::this_thread::sleep_for(std::chrono::microseconds(strike.pause_us));
  const std::int64_t since_ns = now_ns();
  for (const int victim : strike.victims) {
    if (victim != strike.victims.front()) std::this_thread::sleep_for(std::chrono::microseconds(strike.apart_us));
    job.signal(victim, strike.signal);
  }
  for (int rank = 0; rank < strike.ranks; ++rank) {
    if (strike.strikes(rank)) continue;
    const Ending ending = job.ending_of(rank);
    if (std::string flaw = flaw_of(strike, rank, ending); !flaw.empty()) outcome.flaws.push_back(std::move(flaw));
    if (std::string_view(ending.kind) != "PeerLost") continue;
    outcome.latencies_s.push_back(static_cast<double>(ending.at_ns - since_ns) * 1e-9);
  }
  return outcome;
}

}  // namespace syncopate::test
