// Scopes: every algorithm is proved on the ranks of a host and on those of equal place, whatever the hosts' sizes.
#include <gtest/gtest.h>

#include "collective/select/scope.hpp"
#include "entries.hpp"

namespace syncopate {
namespace {

class ScopedAlgorithm : public testing::TestWithParam<test::Entry> {};

const std::vector<std::vector<std::uint32_t>> kHosts = {
    {0, 0, 0, 0, 0},                 // one host
    {0, 1, 2, 3, 4},                 // a rank each
    {0, 0, 0, 1, 1, 1},              // even
    {0, 1, 0, 1, 0, 1, 0, 1},        // ranks dealt out to hosts
    {0, 0, 0, 0, 1, 1},              // uneven
    {2, 2, 2, 2, 2, 0, 1, 1},        // one host of one rank
    {0, 0, 0, 1, 1, 2, 2, 2, 2, 1},  // three of them
};

int smallest_part(const PlanRequest& request) {
  const auto parts = collective::select::parts_of(request);
  return static_cast<int>(std::ranges::min_element(parts, {}, &std::vector<std::uint32_t>::size)->size());
}

TEST_P(ScopedAlgorithm, IsProvedInEveryPart) {
  const auto [algorithm, collective] = GetParam();
  for (const auto& hosts : kHosts)
    for (const Scope scope : {Scope::group, Scope::host, Scope::across}) {
      PlanRequest request{.collective = collective, .algorithm = std::string(algorithm->name), .hosts = hosts};
      request.ranks = static_cast<int>(hosts.size());
      request.scope = scope;
      for (const int root : test::roots_of(collective, smallest_part(request))) {
        request.root = root;
        EXPECT_EQ(verify_plans(plan_collective(request), request), "")
            << name_of(scope) << " of " << testing::PrintToString(hosts) << ", root " << root;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ScopedAlgorithm, testing::ValuesIn(test::all_entries()), test::title);

TEST(Scopes, RunOverAsManyPlacesAsTheSmallestHostHas) {
  PlanRequest request{.ranks = 8, .ranks_per_host = 3, .scope = Scope::across};
  EXPECT_EQ(collective::select::parts_of(request), (std::vector<std::vector<std::uint32_t>>{{0, 3, 6}, {1, 4, 7}}));
  request.scope = Scope::host;
  EXPECT_EQ(collective::select::parts_of(request),
            (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
}

TEST(Scopes, WithAStepOutOfAPartAreRefused) {
  const PlanRequest request{.algorithm = "ring", .ranks = 8, .ranks_per_host = 3, .scope = Scope::across};
  std::vector<Plan> plans = plan_collective(request);
  plans[0].steps[0].peer = 1;
  EXPECT_NE(verify_plans(plans, request).find("outside"), std::string::npos) << verify_plans(plans, request);
  plans = plan_collective(request);
  plans[2] = plans[1];
  EXPECT_EQ(verify_plans(plans, request), "rank 2 is in no part but has a step");
}

TEST(Scopes, GoByTheCostsOfTheirLinks) {
  const NetworkCost cost({1e-3, 1e-7, 0}, {1e-6, 1e-10, 0});
  PlanRequest request{.algorithm = "ring", .ranks = 6, .bytes = 1 << 20, .ranks_per_host = 3, .scope = Scope::host};
  const double within = price_plans(request, cost).predicted_s;
  request.scope = Scope::across;
  const double across = price_plans(request, cost).predicted_s;
  EXPECT_NEAR(within, price_plans({.algorithm = "ring", .ranks = 3, .bytes = 1 << 20}, cost).predicted_s, 1e-12);
  EXPECT_NEAR(across, price_plans({.algorithm = "ring", .ranks = 2, .bytes = 1 << 20}, cost.inter).predicted_s, 1e-12);
}

}  // namespace
}  // namespace syncopate
