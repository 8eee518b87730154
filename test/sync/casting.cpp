// Values that a caller has cast to the 16 bits of the codec: the averages are those of f32 values, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "base/random.hpp"
#include "kernel/cast.hpp"
#include "ranks.hpp"
#include "syncopate/combiner.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"

namespace syncopate::test::casting {
namespace {

struct Kind {
  const char* codec;
  DType type;
};
constexpr Kind kKinds[] = {{"fp16", DType::f16}, {"bf16", DType::bf16}};
const std::vector<Gradient> kModel{{"matrix", 1 << 17, DType::f32, 256}, {"bias", 37}};

using Memory = std::vector<std::byte>;

Memory cast(DType from, DType to, const Memory& values) {
  Memory memory(values.size() / size_of(from) * size_of(to));
  kernel::cast({from, to}, values.data(), memory.data(), values.size() / size_of(from));
  return memory;
}

Memory bytes_of(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Bits of f32: of any value, or near one that the 16-bit type has, so that infinities, NaN, subnormals and ties come
/// too.
std::uint32_t bits_of(const base::CounterRandom& random, std::size_t i, DType type) {
  const std::uint64_t drawn = random.bits(i);
  const auto any = static_cast<std::uint32_t>(drawn);
  if ((drawn >> 32) % 4 == 0) return any;
  const auto half = static_cast<std::uint16_t>(any);
  float value = 0;
  kernel::cast({type, DType::f32}, reinterpret_cast<const std::byte*>(&half), reinterpret_cast<std::byte*>(&value), 1);
  constexpr std::uint32_t kNear[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001};
  return std::bit_cast<std::uint32_t>(value) + kNear[(drawn >> 40) % std::size(kNear)];
}

Memory drawn(int rank, std::size_t gradient, DType type) {
  const base::CounterRandom random{static_cast<std::uint64_t>(rank), gradient, 7};
  Memory memory(kModel[gradient].elements * sizeof(float));
  for (std::size_t i = 0; i < kModel[gradient].elements; ++i) {
    const std::uint32_t bits = bits_of(random, i, type);
    std::memcpy(memory.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return memory;
}

/// The averages in f32 of a step in one bucket, whose values come in `type`.
std::vector<Memory> averages(Group& group, const Kind& kind, DType type, const std::string& algorithm = "auto") {
  Combiner combiner(group, kModel, {.coding = {.codec = kind.codec}, .algorithm = algorithm});
  EXPECT_EQ(combiner.casts_to(), kind.type);
  std::vector<Memory> values;
  for (std::size_t i = 0; i < kModel.size(); ++i)
    values.push_back(cast(DType::f32, type, drawn(group.rank(), i, kind.type)));
  std::vector<PlacedGradient> bucket;
  for (std::size_t i = 0; i < kModel.size(); ++i)
    bucket.push_back({i, Buffer(values[i].data(), kModel[i].elements, type)});
  combiner.combine(bucket);
  combiner.end_step();
  for (Memory& each : values) each = cast(type, DType::f32, each);
  return values;
}

TEST(CastValues, HaveTheAveragesOfFloats) {
  for (const Kind& kind : kKinds)
    for (const int ranks : {1, 2, 3, 5})
      on_every_transport(ranks, [&](Group& group) {
        EXPECT_TRUE(averages(group, kind, kind.type) == averages(group, kind, DType::f32))
            << kind.codec << " on " << ranks << " ranks over " << group.transport();
      });
}

TEST(CastValues, HaveThemWithEveryAlgorithm) {
  for (const Kind& kind : kKinds)
    for (const RankedAlgorithm& entry : sort_algorithms({.collective = Collective::allreduce, .ranks = 4, .bytes = 1}))
      on_groups(4, [&](Group& group) {
        EXPECT_TRUE(averages(group, kind, kind.type, entry.algorithm) ==
                    averages(group, kind, DType::f32, entry.algorithm))
            << kind.codec << " with " << entry.algorithm;
      });
}

TEST(CastValues, MayComeOnSomeRanksOnly) {
  for (const Kind& kind : kKinds)
    on_every_transport(3, [&](Group& group) {
      const std::vector<Memory> floats = averages(group, kind, DType::f32);
      EXPECT_TRUE(averages(group, kind, group.rank() == 1 ? kind.type : DType::f32) == floats) << kind.codec;
    });
}

TEST(CastValues, MayTakeTurnsWithFloats) {
  on_groups(2, [&](Group& group) {
    Combiner combiner(group, {{"bias", 37}}, {.coding = {.codec = "bf16"}});
    const std::vector<float> own(37, group.rank() == 0 ? 1.0F : 2.0F);
    for (const DType type : {DType::f32, DType::bf16, DType::f32}) {
      Memory values = cast(DType::f32, type, bytes_of(own));
      const PlacedGradient placed{0, Buffer(values.data(), own.size(), type)};
      combiner.combine(std::span(&placed, 1));
      combiner.end_step();
      EXPECT_EQ(cast(type, DType::f32, values), bytes_of(std::vector<float>(own.size(), 1.5F))) << name_of(type);
    }
  });
}

TEST(CastValues, AreRefusedWhereTheyWouldGiveOtherAverages) {
  std::vector<std::uint16_t> halves(37);
  const PlacedGradient placed{0, Buffer(halves.data(), halves.size(), DType::f16)};
  for (const CombinerOptions& options : {CombinerOptions{.coding = {.codec = "none"}},
                                         {.coding = {.codec = "bf16"}},
                                         {.coding = {.codec = "topk"}},
                                         {.coding = {.codec = "fp16"}, .exchange = "hierarchical"}})
    on_groups(1, [&](Group& group) {
      Combiner combiner(group, {{"bias", 37}}, options);
      EXPECT_NE(combiner.casts_to(), DType::f16) << options.coding.codec;
      EXPECT_THROW(combiner.combine(std::span(&placed, 1)), Misuse) << options.coding.codec;
    });
}

}  // namespace
}  // namespace syncopate::test::casting
