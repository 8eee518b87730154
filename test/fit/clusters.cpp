// Cluster files: a fit states its error by size, and links that miss what was measured are neither hidden nor used.
#include <gtest/gtest.h>

#include <algorithm>

#include "fit/cluster.hpp"
#include "fit/measure.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::tools::fit {
namespace {

constexpr LinkCost kLink{.alpha_s = 40e-6, .beta_s_per_byte = 0.8e-9, .gamma_s_per_byte = 0.1e-9};
constexpr std::uint64_t kSizes[] = {4, 4096, 65536, 1048576};

/// Four hosts of one rank each, whose collectives take the times of such links.
Measured as_the_links_say() {
  Measured measured{.transport = "tcp", .all = {}, .within = {}, .between = {}};
  for (const char* collective : {"allreduce", "allgather", "reduce_scatter"})
    for (const std::uint64_t bytes : kSizes) {
      const PlanRequest request{
          .collective = collective_named(collective), .algorithm = "ring", .ranks = 4, .bytes = bytes};
      measured.all.push_back({collective, "ring", 4, bytes, price_plans(request, kLink).predicted_s, 1e-6});
    }
  return measured;
}

/// The same, but that the library switches its all-reduce at 64 KiB and takes four times as long from there.
Measured with_a_jump() {
  Measured measured = as_the_links_say();
  for (Timing& timing : measured.all)
    if (timing.collective == "allreduce" && timing.bytes >= 65536) timing.seconds *= 4;
  return measured;
}

TEST(ClusterFit, OfALawfulNetworkIsGoodAtEverySizeAndSaysSo) {
  const Measured measured = as_the_links_say();
  const ClusterFit fit = fit_cluster(measured);
  ASSERT_EQ(fit.errors.size(), std::size(kSizes));
  for (std::size_t i = 0; i < fit.errors.size(); ++i) {
    EXPECT_EQ(fit.errors[i].bytes, kSizes[i]);
    EXPECT_LT(fit.errors[i].worst, 1e-3) << kSizes[i];
  }
  EXPECT_EQ(complaint_about(measured, fit), "");
  const Cluster cluster = parse_cluster(cluster_file(measured, fit).dump(), "cluster.json");
  EXPECT_LT(cluster.links_worst_error, 1e-3);
  EXPECT_EQ(warning_about_links(cluster, 64), "");
}

TEST(ClusterFit, NamesTheSizesItMissesByHowMuchAndWhatIsUsedInstead) {
  const Measured measured = with_a_jump();
  const ClusterFit fit = fit_cluster(measured);
  EXPECT_LT(fit.errors[0].worst, kTolerableLinkError);
  EXPECT_LT(fit.errors[1].worst, kTolerableLinkError);
  for (const std::size_t jumped : {2, 3}) {
    EXPECT_NEAR(fit.errors[jumped].worst, 0.75, 0.05) << "a quarter of the time";
    EXPECT_LT(fit.errors[jumped].median, kTolerableLinkError) << "two of three collectives follow the law";
    EXPECT_EQ(fit.errors[jumped].collective, "allreduce");
  }
  EXPECT_LT(fit.median_of_links, kTolerableLinkError);
  EXPECT_NEAR(fit.worst_of_links, 0.75, 0.05);
  const std::string complaint = complaint_about(measured, fit);
  test::expect_words(complaint, {"at 2 of 4 sizes", "64 KiB by up to 7", "1 MiB by up to 7", "allreduce ring",
                                 "On 4 ranks", "use the measured tables"});
  EXPECT_EQ(complaint.find("4 B by"), std::string::npos) << complaint;
}

TEST(ClusterFit, ThatMissesKeepsTheTablesWhichPlannersPreferAndMarksTheLinks) {
  const Measured measured = with_a_jump();
  const Cluster cluster = parse_cluster(cluster_file(measured, fit_cluster(measured)).dump(), "cluster.json");
  EXPECT_NEAR(cluster.links_worst_error, 0.75, 0.05);
  const auto table = std::ranges::find(cluster.costs, Collective::allreduce, &MeasuredCost::collective);
  ASSERT_NE(table, cluster.costs.end());
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    EXPECT_EQ(table->table[i].first, static_cast<double>(kSizes[i]));
    EXPECT_EQ(table->table[i].second, measured.all[i].seconds);
  }
  PlanRequest request{.collective = Collective::allreduce, .ranks = 4, .bytes = 65536};
  request.hosts = {0, 1, 2, 3};
  const RankedAlgorithm best = sort_algorithms(request, cost_of(cluster)).front();
  ASSERT_TRUE(best.measured_s);
  EXPECT_NEAR(*best.measured_s, measured.all[2].seconds, 1e-12);
  EXPECT_EQ(warning_about_links(cluster, 4), "");
  const std::string doubt = warning_about_links(cluster, 8);
  test::expect_words(doubt, {"on 8 ranks", "measurements on 4", "by up to 7", "syncopate fit"});
}

TEST(ClusterFit, LeavesHalfOfAShortLimitToLargeSizes) {
  Effort effort{.bytes = {4, 256, 4096, 65536, 1 << 20}, .budget_s = 0.05, .limit_s = 45};
  EXPECT_EQ(budget_of_row_s(effort, 50), 0.05);
  for (const double limit_s : {10.0, 1.0}) {
    effort.limit_s = limit_s;
    EXPECT_DOUBLE_EQ(budget_of_row_s(effort, 50) * 50 * 5, limit_s / 2);
  }
}

TEST(ClusterFit, OfSmallSizesMakesPlansOfLargeOnesDoubtful) {
  const Cluster cluster =
      parse_cluster(cluster_file(as_the_links_say(), fit_cluster(as_the_links_say())).dump(), "c.json");
  const auto doubt = [&](double times) {
    return warning_about_size(cost_of(cluster), 4, Collective::allreduce, times * kSizes[3]);
  };
  EXPECT_EQ(doubt(1), "");
  EXPECT_NE(doubt(100).find("the timings end at 1 MiB"), std::string::npos) << doubt(100);
  EXPECT_EQ(doubt(100).find("guesses"), std::string::npos) << doubt(100);
  EXPECT_NE(doubt(192).find("predicted times and their order are guesses at 192 times the largest size"),
            std::string::npos)
      << doubt(192);
}

}  // namespace
}  // namespace syncopate::tools::fit
