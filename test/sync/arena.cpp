// The arena: gradients of one type adjoin, in forward order, and those of other types lie elsewhere.
#include "sync/arena.hpp"

#include <gtest/gtest.h>

#include <map>

#include "ranks.hpp"

namespace syncopate {
namespace {

TEST(Arena, HoldsGradientsOfATypeWithoutGaps) {
  test::on_groups(2, [](Group& group) {
    const std::vector<Gradient> model{
        {"a", 5, DType::f64}, {"b", 3}, {"c", 7, DType::f64}, {"d", 1, DType::f16}, {"e", 4, DType::f64},
        {"f", 2, DType::f16}, {"g", 9}};
    const sync::Arena arena(group, model);
    std::map<DType, const std::byte*> ends;
    std::map<DType, std::size_t> elements;
    for (std::size_t i = 0; i < model.size(); ++i) {
      const Buffer gradient = arena.gradient(i);
      EXPECT_EQ(gradient.dtype, model[i].dtype);
      EXPECT_EQ(gradient.count, model[i].elements);
      const auto [end, is_first] = ends.try_emplace(gradient.dtype, gradient.bytes().data());
      EXPECT_EQ(gradient.bytes().data(), end->second) << model[i].name;
      end->second += gradient.bytes().size();
      elements[gradient.dtype] += gradient.count;
    }
    ASSERT_EQ(arena.vectors().size(), elements.size());
    for (const Buffer& vector : arena.vectors()) {
      EXPECT_EQ(vector.count, elements[vector.dtype]);
      EXPECT_EQ(vector.bytes().data() + vector.bytes().size(), ends[vector.dtype]);
    }
    EXPECT_EQ(arena.bytes_of(0, 2), 5U * 8 + 3 * 4 + 7 * 8);
  });
}

}  // namespace
}  // namespace syncopate
