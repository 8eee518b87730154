// Hierarchical: a codec's rounds on each rank's rows, across hosts of equal and unequal size.
#include <gtest/gtest.h>

#include "ranks.hpp"
#include "sync/bench.hpp"
#include "sync/cut.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace test;

/// Rows that no number of ranks divides, a vector, and a gradient with fewer rows than a host has ranks.
const std::vector<Gradient> kModel{{"a", 35, DType::f32, 7}, {"b", 11}, {"c", 6, DType::f32, 1}};

struct Hosts {
  int ranks = 4, per_host = 2;
};
void PrintTo(const Hosts& hosts, std::ostream* out) {
  *out << hosts.ranks << " ranks, " << hosts.per_host << " a host";
}

class Hierarchical : public testing::TestWithParam<Hosts> {
 protected:
  template <class Body>
  void on_hosts(Body body) const {
    auto groups = Group::threads(GetParam().ranks, {.ranks_per_host = GetParam().per_host});
    for (const std::exception_ptr& failure :
         outcomes(GetParam().ranks, [&](int rank) { body(*groups[static_cast<std::size_t>(rank)]); }))
      if (failure) std::rethrow_exception(failure);
  }
};

float value(int rank, std::size_t gradient, std::size_t element) {
  return static_cast<float>(rank + 1) * static_cast<float>(gradient + 1) + static_cast<float>(element % 5);
}

TEST_P(Hierarchical, AveragesOverAllRanksByEveryKindOfRound) {
  on_hosts([&](Group& group) {
    for (const compress::Codec* codec : {compress::settings_of("none").codec, &kPairs, &kTwoSums}) {
      Bench bench(group, *codec, kModel, "hierarchical");
      for (int step = 0; step < 2; ++step) {
        for (std::size_t g = 0; g < kModel.size(); ++g)
          for (std::size_t i = 0; i < kModel[g].elements; ++i) bench.gradient(g)[i] = value(group.rank(), g, i);
        bench.step({0, kModel.size() - 1});
        if (codec == &kTwoSums) continue;  // speaks of its first tensor alone
        for (std::size_t g = 0; g < kModel.size(); ++g)
          for (std::size_t i = 0; i < kModel[g].elements; ++i) {
            double sum = 0;
            for (int rank = 0; rank < group.size(); ++rank) sum += value(rank, g, i);
            ASSERT_NEAR(bench.gradient(g)[i], sum / group.size(), 1e-5) << codec->name << ' ' << g << ' ' << i;
          }
      }
    }
  });
}

// Among them ranks without any rows, beyond the smallest host's.
TEST_P(Hierarchical, GivesEveryRankTheSameBitsByEveryCodec) {
  for (const compress::Codec* codec : compress::codecs()) {
    if (codec->wants_weights) continue;
    std::vector<std::vector<float>> results(static_cast<std::size_t>(GetParam().ranks));
    on_hosts([&](Group& group) {
      Synchronizer synchronizer(group, kModel,
                                {.policy = "single",
                                 .coding = {.codec = std::string(codec->name), .dense_below = 0},
                                 .exchange = "hierarchical"});
      auto& mine = results[static_cast<std::size_t>(group.rank())];
      for (int step = 0; step < 2; ++step) {
        for (std::size_t g = kModel.size(); g-- > 0;) {
          for (std::size_t i = 0; i < kModel[g].elements; ++i)
            static_cast<float*>(synchronizer.gradient(g).data)[i] = 0.1F * value(group.rank(), g, i);
          synchronizer.ready(g);
        }
        synchronizer.wait();
        for (std::size_t g = 0; g < kModel.size(); ++g) {
          const auto values = floats_of(synchronizer.gradient(g));
          mine.insert(mine.end(), values.begin(), values.end());
        }
      }
    });
    for (const auto& result : results) EXPECT_EQ(result, results[0]) << codec->name;
  }
}

// A rank's rows of a gradient must not depend on which gradients share a bucket.
TEST_P(Hierarchical, KeepsTheSameRowsInEveryPartition) {
  on_hosts([&](Group& group) {
    Bench together(group, kLate, {{"a", 35, DType::f32, 7}, {"b", 35, DType::f32, 7}}, "hierarchical");
    Bench apart(group, kLate, together.flow.gradients, "hierarchical");
    for (Bench* bench : {&together, &apart})
      for (const std::size_t g : {0, 1})
        for (std::size_t i = 0; i < 35; ++i) bench->gradient(g)[i] = value(group.rank(), g, i);
    for (const std::size_t g : {1, 0}) apart.step({g, g});
    apart.flow.state.commit();
    together.step({0, 0});
    together.step({1, 1});
    together.flow.state.commit();
    EXPECT_EQ(together.flow.state.save("late", together.flow.gradients).gradients,
              apart.flow.state.save("late", apart.flow.gradients).gradients);
  });
}

INSTANTIATE_TEST_SUITE_P(Hosts, Hierarchical,
                         testing::Values(Hosts{4, 2}, Hosts{6, 3}, Hosts{5, 2}, Hosts{4, 4}, Hosts{3, 1}, Hosts{1, 1}));

}  // namespace
}  // namespace syncopate
