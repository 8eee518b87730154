// The arena: gradients of one type adjoin, in forward order, and those of other types lie elsewhere.
#include <gtest/gtest.h>

#include <map>

#include "ranks.hpp"
#include "sync/bucket.hpp"

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

TEST(Arena, MemoryStaysWithWhoHoldsItBeyondTheSynchronizer) {
  const auto groups = Group::threads(1);
  std::vector<std::shared_ptr<std::byte[]>> memory;
  Buffer gradient;
  {
    const Synchronizer synchronizer(*groups[0], {{"a", 5}, {"b", 3, DType::f64}});
    memory = synchronizer.memory();
    gradient = synchronizer.gradient(1);
  }
  ASSERT_EQ(memory.size(), 2U);
  EXPECT_EQ(static_cast<std::byte*>(gradient.data), memory[1].get());
  static_cast<double*>(gradient.data)[2] = 1;  // a sanitizer sees it if it is gone
}

}  // namespace
}  // namespace syncopate
