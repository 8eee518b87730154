// bit_sum against a plain loop, on every instruction set.
#include "kernel/sum.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "elements.hpp"

namespace syncopate::kernel {
namespace {

TEST(BitSum, CountsEveryElementOnceOnEveryInstructionSet) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t count : testing::kCounts) {
      testing::Guarded in(testing::any_elements(DType::f32, count, count + 3), 4);
      std::uint32_t expected = 0;
      for (std::size_t i = 0; i < count; ++i) expected += testing::element<std::uint32_t>(in.data(), i);
      EXPECT_EQ(bit_sum({reinterpret_cast<const float*>(in.data()), count}), expected) << count << " on " << target;
    }
  });
}

}  // namespace
}  // namespace syncopate::kernel
