// Loans: memory that a rank lends to its peer is written by exactly the frame for which the rank waits.
#include <gtest/gtest.h>

#include <algorithm>

#include "collective/plan/program.hpp"
#include "conformance/entries.hpp"

namespace syncopate {
namespace {

using collective::plan::Program;
using collective::plan::Return;
using collective::plan::Route;

class EveryAllreduceLends : public testing::TestWithParam<test::Entry> {};

const collective::plan::Route& route_of(const std::vector<collective::plan::Route>& routes, std::uint32_t peer) {
  return *std::ranges::find(routes, peer, &collective::plan::Route::peer);
}

/// The step of the other rank that meets this one.
std::uint32_t partner(const collective::plan::Route& own, const collective::plan::Route& facing, std::uint32_t step) {
  return facing.steps[static_cast<std::size_t>(std::ranges::find(own.steps, step) - own.steps.begin())];
}

/// A peer keeps a loan until it posts the frame that returns it. If the owner waited for another frame first, the loan
/// would never return. `owner` lends by step `send`.
void expect_returned(const std::vector<collective::plan::Program>& programs, std::uint32_t owner, std::uint32_t send) {
  const std::uint32_t keeper = programs[owner].plan.steps[send].peer;
  const collective::plan::Program &mine = programs[owner], &theirs = programs[keeper];
  const collective::plan::Route &out = route_of(mine.outgoing, keeper), &in = route_of(mine.incoming, keeper);
  const collective::plan::Route &their_out = route_of(theirs.outgoing, owner),
                                &their_in = route_of(theirs.incoming, owner);
  const collective::plan::Return& back = theirs.returns[partner(out, their_in, send)];
  if (back.step == collective::plan::Return::kNone) return;  // the peer reads it and returns it
  const std::uint32_t awaited = partner(their_out, in, back.step);
  const auto& waits = mine.waits[awaited];
  EXPECT_NE(std::ranges::find(waits, send), waits.end())
      << "rank " << owner << " lends by step " << send << ", and step " << awaited << " is returned";
}

TEST_P(EveryAllreduceLends, WhatReturnsByTheFrameItWaitsFor) {
  const collective::Algorithm* algorithm = GetParam().first;
  std::size_t loans = 0;
  for (std::uint32_t ranks = 2; ranks <= 33; ++ranks)
    for (const std::uint32_t tiles : {1U, 3U}) {
      if (tiles > 1 && (algorithm->tiles == nullptr || !algorithm->tiles({.size = ranks}))) continue;
      std::vector<collective::plan::Program> programs;
      for (const Plan& plan : plan_collective(
               {.algorithm = std::string(algorithm->name), .ranks = static_cast<int>(ranks), .bytes = 1 << 20}))
        programs.push_back(collective::plan::compile(collective::plan::tiled(plan, tiles)));
      for (std::uint32_t rank = 0; rank < ranks; ++rank)
        for (std::uint32_t step = 0; step < programs[rank].lends.size(); ++step)
          if (programs[rank].lends[step]) ++loans, expect_returned(programs, rank, step);
    }
  if (algorithm->name != "recursive_doubling" && algorithm->name != "linear_pipeline") EXPECT_GT(loans, 0U);
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAllreduceLends, testing::ValuesIn(test::entries_of(Collective::allreduce)),
                         test::title);

}  // namespace
}  // namespace syncopate
