// Links: known costs are found again in the prices they make, also under noise; impossible ones are never claimed.
#include "fit/links.hpp"

#include <gtest/gtest.h>

#include "syncopate/error.hpp"

namespace syncopate::tools::fit {
namespace {

std::vector<Observation> observe(const LinkCost& link, double noise) {
  std::vector<Observation> seen;
  double sign = 1;
  for (const Collective collective : {Collective::allreduce, Collective::allgather, Collective::reduce_scatter})
    for (const std::uint64_t bytes : {4U, 4096U, 262144U, 4194304U}) {
      const PlanRequest request{.collective = collective, .algorithm = "ring", .ranks = 4, .bytes = bytes};
      seen.push_back({request, price_plans(request, link).predicted_s * (1 + noise * sign)});
      sign = -sign;
    }
  return seen;
}

TEST(Links, AreFoundInThePricesTheyMake) {
  const LinkCost link{.alpha_s = 40e-6, .beta_s_per_byte = 0.8e-9, .gamma_s_per_byte = 0.1e-9};
  const LinkFit fit = fit_links(observe(link, 0));
  EXPECT_NEAR(fit.link.alpha_s, link.alpha_s, 1e-9);
  EXPECT_NEAR(fit.link.beta_s_per_byte, link.beta_s_per_byte, 1e-13);
  EXPECT_NEAR(fit.link.gamma_s_per_byte, link.gamma_s_per_byte, 1e-13);
  for (const double error : fit.errors) EXPECT_NEAR(error, 0, 1e-6);
}

TEST(Links, AreNeverNegative) {
  const LinkFit fit = fit_links(observe({.alpha_s = 1e-4, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 0}, 0.05));
  EXPECT_GE(fit.link.gamma_s_per_byte, 0);
  EXPECT_NEAR(fit.link.alpha_s, 1e-4, 1e-5);
  EXPECT_NEAR(fit.link.beta_s_per_byte, 1e-9, 1e-10);
}

TEST(Links, SayHowFarTheyAreOff) {
  std::vector<Observation> seen = observe({.alpha_s = 1e-4, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 0}, 0);
  seen.back().seconds *= 2;  // one size that no such link explains
  const LinkFit fit = fit_links(seen);
  EXPECT_LT(fit.errors.back(), -0.3);
}

TEST(Links, AreNotBentByAFewTimesThatSomethingElseMade) {
  const LinkCost link{.alpha_s = 1e-4, .beta_s_per_byte = 1e-9, .gamma_s_per_byte = 0};
  std::vector<Observation> seen = observe(link, 0.01);
  seen[2].seconds *= 40;   // another process took the core
  seen[5].seconds *= 0.1;  // a token bucket let a burst through
  const LinkFit fit = fit_links(seen);
  EXPECT_NEAR(fit.link.alpha_s, link.alpha_s, 0.05 * link.alpha_s);
  EXPECT_NEAR(fit.link.beta_s_per_byte, link.beta_s_per_byte, 0.05 * link.beta_s_per_byte);
}

TEST(Links, NeedObservations) { EXPECT_THROW(std::ignore = fit_links({}), Misuse); }

}  // namespace
}  // namespace syncopate::tools::fit
