// The threshold codec sends plus or minus tau in one bit, keeps the rest, and refuses an invalid tau.
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "compress/coders.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress {
namespace {

using test::Coders;
using test::vectors_of;
using test::with_residual;

TEST(Threshold, SendsTauAndKeepsTheRest) {
  Coders coders(with_residual("threshold:0.5"), vectors_of({6}), 2);
  const float least = std::nextafter(0.5F, 0.0F);
  coders.at(0).values = {0.5F, -0.5F, least, 3.0F, -0.75F, 0.0F};
  coders.at(1).values = {0.5F, 0.25F, 0.0F, -1.0F, -0.75F, -0.0F};
  coders.step();
  EXPECT_EQ(coders.at(1).values, (std::vector<float>{0.5F, -0.25F, 0.0F, 0.0F, -0.5F, 0.0F}));
  const std::vector<float> first{0, 0, least, 2.5F, -0.25F, 0}, second{0, 0.25F, 0, -0.5F, -0.25F, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(coders.residual(0, 0, i), first[i]) << i;
    EXPECT_EQ(coders.residual(1, 0, i), second[i]) << i;
  }
  coders.at(0).values = {0, 0, 0, 0, -0.25F, 0};
  coders.at(1).values = {0, 0, 0, 0, 0, 0};
  coders.step();
  EXPECT_EQ(coders.at(0).values, (std::vector<float>{0, 0, 0, 0, -0.25F, 0})) << "residuals reach tau in turn";
}

// 1 in 100 of 80000 elements is sent, as one bit and an index of about 8.2 bits.
TEST(Threshold, TakesOneBitAndAnIndexForEachElement) {
  Coders coders(with_residual("threshold:1"), vectors_of({80000}), 1);
  const base::CounterRandom random{3};
  std::size_t selected = 0;
  for (std::size_t i = 0; i < 80000; ++i) {
    const bool is_large = random.below(100, i) == 0;
    coders.at(0).values[i] = is_large ? -1.5F : 0.5F;
    selected += is_large ? 1 : 0;
  }
  coders.step();
  EXPECT_LE(static_cast<double>(coders.payloads(0)[0].size()), 9.4 / 8 * static_cast<double>(selected) + 12);
}

TEST(Threshold, RefusesWhatIsNoThreshold) {
  for (const char* tau : {"0", "-1", "nan", "inf", "1e-40", "x", "1,2", ""})
    EXPECT_THROW(std::ignore = settings_of(std::string("threshold:") + tau), Misuse) << tau;
  EXPECT_NO_THROW(std::ignore = settings_of("threshold:1e-20"));
}

}  // namespace
}  // namespace syncopate::compress
