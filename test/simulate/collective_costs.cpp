// Collective costs: every algorithm's law arrives in the schedule, and the paper's table is among them.
#include <gtest/gtest.h>

#include <cmath>

#include "simulate/costs.hpp"
#include "syncopate/error.hpp"

namespace syncopate::simulate {
namespace {

constexpr LinkCost kLink{.alpha_s = 45.25e-6, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 2.5e-9};

PlanRequest allreduce(const std::string& algorithm, int ranks, std::uint64_t bytes = 100 << 20) {
  return {.algorithm = algorithm, .ranks = ranks, .bytes = bytes};
}

std::vector<std::string> allreduce_algorithms() {
  std::vector<std::string> names;
  for (const collective::Algorithm* entry : collective::algorithms())
    if (entry->offers(Collective::allreduce)) names.emplace_back(entry->name);
  return names;
}

TEST(CollectiveCost, FollowsTheLawOfEveryAlgorithm) {
  for (const std::string& name : allreduce_algorithms())
    for (const int ranks : {2, 3, 8, 64, 100}) {
      const schedule::Cost cost = costs::cost_of_collective(allreduce(name, ranks), kLink);
      int far = 0;
      for (double bytes = 4; bytes < 100 << 20; bytes *= 1.1) {
        PlanRequest request = allreduce(name, ranks);
        request.bytes = static_cast<std::uint64_t>(std::llround(bytes));
        const double truth = collective::select::choose(request, kLink).law_s;
        if (std::abs(cost(bytes) - truth) > 2e-4 * truth) ++far;
      }
      EXPECT_LE(far, 3) << name << ": only a size within 1/4096 of a jump of the law may be off";
    }
}

TEST(CollectiveCost, OnAPowerOfTwoIsTheTableOfThePaper) {
  const std::pair<std::string, std::string> rows[] = {{"mst", "binary_tree"},
                                                      {"recursive_doubling", "recursive_doubling"},
                                                      {"halving_doubling", "halving_doubling"},
                                                      {"ring", "ring"}};
  for (const auto& [ours, theirs] : rows)
    for (const int ranks : {2, 4, 32, 64}) {
      const schedule::Cost formula = schedule::cost_model_named("alpha_beta_gamma")
                                         .cost({.ranks = static_cast<double>(ranks),
                                                .alpha_s = kLink.alpha_s,
                                                .beta_s_per_byte = kLink.beta_s_per_byte,
                                                .gamma_s_per_byte = kLink.gamma_s_per_byte,
                                                .algorithm = theirs});
      const schedule::Cost law = costs::cost_of_collective(allreduce(ours, ranks), kLink);
      for (const double bytes : {0.0, 1e3, 1e6, 5e7})
        EXPECT_NEAR(law(bytes), formula(bytes), 1e-9 * formula(bytes)) << ours << ' ' << ranks << ' ' << bytes;
    }
}

TEST(CollectiveCost, OfAutoIsNeverAboveAnyAlgorithmButForTheBonusOfSteadyOnes) {
  const schedule::Cost cost = costs::cost_of_collective(allreduce("auto", 16), kLink);
  for (const std::string& name : allreduce_algorithms())
    for (double bytes = 4; bytes < 1e8; bytes *= 1.7)
      EXPECT_LE(cost(bytes), 1.1502 * costs::cost_of_collective(allreduce(name, 16), kLink)(bytes))
          << name << ' ' << bytes;
}

TEST(CollectiveCost, OfOneRankIsNothing) { EXPECT_EQ(costs::cost_of_collective(allreduce("ring", 1), kLink)(1e9), 0); }

TEST(CollectiveCost, OfAnUnknownAlgorithmIsMisuse) {
  EXPECT_THROW(static_cast<void>(costs::cost_of_collective(allreduce("snail", 4), kLink)), Misuse);
  EXPECT_THROW(static_cast<void>(costs::cost_of_collective(allreduce("snail", 1), kLink)), Misuse);
  EXPECT_THROW(static_cast<void>(costs::cost_of_collective(allreduce("ring", 0), kLink)), Misuse);
}

}  // namespace
}  // namespace syncopate::simulate
