// Packed fields are restored and have the documented positions on every instruction set; invalid fields are detected.
#include "kernel/pack.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "elements.hpp"

namespace syncopate::kernel {
namespace {

using testing::Guarded;

std::vector<std::uint8_t> random_fields(std::size_t count, std::uint32_t most) {
  const base::CounterRandom random{count, most};
  std::vector<std::uint8_t> fields(count);
  for (std::size_t i = 0; i < count; ++i) fields[i] = static_cast<std::uint8_t>(random.below(most + 1, i));
  return fields;
}

TEST(PackedBits, StandAtTheStatedPlacesAndComeBack) {
  testing::on_every_target([](const std::string& target) {
    for (unsigned bits = 1; bits <= 8; ++bits)
      for (const std::size_t blocks : {0, 1, 2, 7}) {
        const BitFields kind{bits, static_cast<std::uint8_t>((1U << bits) - 1)};
        const auto fields = random_fields(blocks * kBitBlock, kind.most);
        Guarded packed(std::vector<std::byte>(blocks * bits * 8), blocks);
        pack_bits(kind, fields.data(), blocks, packed.data());
        ASSERT_TRUE(packed.guards_hold()) << target;
        for (std::size_t i = 0; i < fields.size(); ++i)
          for (unsigned p = 0; p < bits; ++p) {
            const std::size_t at = (i / 64 * bits + p) * 8 + i % 64 / 8;
            ASSERT_EQ(std::to_integer<int>(packed.data()[at]) >> (i % 8) & 1, fields[i] >> p & 1)
                << bits << " bits, bit " << p << " of field " << i << " on " << target;
          }
        Guarded back(std::vector<std::byte>(fields.size()), 3);
        EXPECT_TRUE(unpack_bits(kind, packed.data(), blocks, reinterpret_cast<std::uint8_t*>(back.data())));
        ASSERT_TRUE(back.guards_hold());
        for (std::size_t i = 0; i < fields.size(); ++i)
          ASSERT_EQ(testing::element<std::uint8_t>(back.data(), i), fields[i]) << bits << " bits on " << target;
      }
  });
}

TEST(PackedBits, WithAFieldAboveTheGreatestAreRefusedWhereverItStands) {
  testing::on_every_target([](const std::string& target) {
    const BitFields kind{3, 6};
    for (std::size_t at = 0; at < 2 * kBitBlock; ++at) {
      std::vector<std::uint8_t> fields(2 * kBitBlock, 6), back(2 * kBitBlock);
      std::vector<std::byte> packed(2 * 24);
      pack_bits(kind, fields.data(), 2, packed.data());
      ASSERT_TRUE(unpack_bits(kind, packed.data(), 2, back.data())) << target;
      fields[at] = 7;
      pack_bits(kind, fields.data(), 2, packed.data());
      ASSERT_FALSE(unpack_bits(kind, packed.data(), 2, back.data())) << at << " on " << target;
    }
  });
}

TEST(PackedTrits, AreTheDigitsOfTheirBytesAndComeBack) {
  testing::on_every_target([](const std::string& target) {
    for (const std::size_t blocks : {0, 1, 5}) {
      const auto fields = random_fields(blocks * kTritBlock, 2);
      Guarded packed(std::vector<std::byte>(blocks * 64), blocks);
      pack_trits(fields.data(), blocks, packed.data());
      ASSERT_TRUE(packed.guards_hold());
      for (std::size_t i = 0; i < blocks * 64; ++i) {
        const std::uint8_t* const first = fields.data() + i / 64 * kTritBlock + i % 64;
        ASSERT_EQ(std::to_integer<int>(packed.data()[i]),
                  first[0] + 3 * first[64] + 9 * first[128] + 27 * first[192] + 81 * first[256])
            << target;
      }
      Guarded back(std::vector<std::byte>(fields.size()), 1);
      EXPECT_TRUE(unpack_trits(packed.data(), blocks, reinterpret_cast<std::uint8_t*>(back.data())));
      ASSERT_TRUE(back.guards_hold());
      for (std::size_t i = 0; i < fields.size(); ++i)
        ASSERT_EQ(testing::element<std::uint8_t>(back.data(), i), fields[i]) << i << " on " << target;
    }
  });
}

TEST(PackedTrits, OfEveryByteAreItsDigitsOrRefused) {
  testing::on_every_target([](const std::string& target) {
    for (unsigned value = 0; value < 256; ++value)
      for (const std::size_t at : {0, 13, 63}) {
        std::vector<std::byte> packed(64);
        packed[at] = std::byte(value);
        std::vector<std::uint8_t> back(kTritBlock);
        ASSERT_EQ(unpack_trits(packed.data(), 1, back.data()), value < 243) << value << " on " << target;
        unsigned rest = value;
        for (std::size_t s = 0; s < 5 && value < 243; ++s, rest /= 3)
          ASSERT_EQ(back[64 * s + at], rest % 3) << value << " on " << target;
      }
  });
}

}  // namespace
}  // namespace syncopate::kernel
