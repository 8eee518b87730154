// Selecting and counting by magnitude against a loop over the elements, on every instruction set.
#include "kernel/select.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "elements.hpp"

namespace syncopate::kernel {
namespace {

/// Random bits, including zeros of both signs, infinities and NaNs, at an unaligned address.
std::vector<float> any_floats(std::size_t count) {
  const auto words = testing::any_elements(DType::f32, count, count + 3);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = testing::element<float>(words.data(), i);
  return values;
}

constexpr std::uint32_t kLeasts[] = {0, 1, 0x3f80'0000, kNotFinite, kNotFinite + 1, 0x7fff'ffff, 0x8000'0000};

TEST(Select, FindsAndCountsWhatReachesEveryThreshold) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      const std::vector<float> values = any_floats(count + 1);
      const float* const elements = values.data() + 1;
      for (const std::uint32_t least : kLeasts) {
        std::vector<std::uint32_t> expected, indices(count);
        for (std::uint32_t i = 0; i < count; ++i)
          if (magnitude(elements[i]) >= least) expected.push_back(5 + i);
        std::vector<float> found(count);
        indices.resize(select_at_least(least, {elements, count, 5}, {indices.data(), found.data()}));
        ASSERT_EQ(indices, expected) << count << " elements, at least " << least << " on " << target;
        ASSERT_EQ(count_at_least(least, elements, count), expected.size())
            << count << " elements, at least " << least << " on " << target;
      }
    }
  });
}

TEST(Select, FindsTheLargestMagnitudeWhereverItStands) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      std::vector<float> values(count, -0.5F);
      EXPECT_EQ(largest_magnitude(values.data(), count), count == 0 ? 0 : magnitude(0.5F)) << target;
      for (std::size_t i = 0; i < count; i += 1 + count / 70) {
        values[i] = -2;
        ASSERT_EQ(largest_magnitude(values.data(), count), magnitude(2)) << i << " of " << count << " on " << target;
        values[i] = -0.5F;
      }
      const std::vector<float> any = any_floats(count);
      std::uint32_t expected = 0;
      for (const float value : any) expected = std::max(expected, magnitude(value));
      ASSERT_EQ(largest_magnitude(any.data(), count), expected) << target;
    }
  });
}

}  // namespace
}  // namespace syncopate::kernel
