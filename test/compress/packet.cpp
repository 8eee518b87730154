// Sparse packets have about as many bits as the entropy of their selection; damaged packets are refused or harmless.
#include "compress/sparse/packet.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/random.hpp"
#include "compress/sparse/bits.hpp"
#include "compress/sparse/index_coding.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {
namespace {

std::vector<std::uint32_t> random_indices(std::uint64_t elements, double density) {
  const base::CounterRandom random{elements, static_cast<std::uint64_t>(density * 1e6)};
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < elements; ++i)
    if (random.uniform(i) < density) indices.push_back(i);
  return indices;
}

/// Runs of neighbours, far from each other.
std::vector<std::uint32_t> clustered_indices(std::uint32_t elements) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t begin = 0; begin + 500 < elements; begin += 60000)
    for (std::uint32_t i = 0; i < 500; i += 1 + (i * i) % 3) indices.push_back(begin + i);
  return indices;
}

void expect_round_trip(const std::vector<std::uint32_t>& indices, std::uint64_t elements) {
  const IndexPlan plan = shortest_coding(indices, elements);
  ASSERT_LE(plan.bytes, most_index_bytes(indices.size(), elements));
  // A guard byte after the end detects writes beyond plan.bytes.
  std::vector<std::byte> bytes(plan.bytes + 1, std::byte{0xa5});
  encode_indices(plan, indices, elements, bytes);
  EXPECT_EQ(bytes.back(), std::byte{0xa5});
  std::vector<std::uint32_t> decoded;
  decode_indices(plan, {indices.size(), elements}, base::ConstBytes(bytes).first(plan.bytes), decoded);
  EXPECT_EQ(decoded, indices) << elements << " elements, coding " << static_cast<int>(plan.coding);
}

TEST(IndexCoding, BringsEverySelection) {
  for (const std::uint64_t elements : {1, 2, 7, 8, 9, 64, 65, 1000, 65535, 65536, 65537, 300000})
    for (const double density : {0.0, 0.0003, 0.01, 0.2, 0.7, 1.0})
      expect_round_trip(random_indices(elements, density), elements);
  expect_round_trip(clustered_indices(2'000'000), 2'000'000);
  expect_round_trip({0}, std::uint64_t{1} << 32);
  expect_round_trip({0xffff'ffff}, std::uint64_t{1} << 32);
  expect_round_trip({5, 0xffff'fff0, 0xffff'ffff}, std::uint64_t{1} << 32);
}

TEST(IndexCoding, EachOfThemIsTheShortestSomewhere) {
  std::set<IndexCoding> seen;
  seen.insert(shortest_coding(random_indices(100000, 0.01), 100000).coding);
  seen.insert(shortest_coding(random_indices(100000, 0.5), 100000).coding);
  // A tight cluster and distant elements: no Rice parameter suits both the small and the large gaps.
  std::vector<std::uint32_t> far;
  for (std::uint32_t i = 0; i < 40; ++i) far.push_back(i < 20 ? i * 3 : 900'000'000 + i * 40'000);
  seen.insert(shortest_coding(far, 1'000'000'000).coding);
  EXPECT_TRUE(seen.contains(IndexCoding::rice));
  EXPECT_TRUE(seen.contains(IndexCoding::bitmap));
}

// The entropy of a random selection is H(d) / d bits per index: 11.4 and 8.1 bits. Golomb-Rice costs about 3 % more.
TEST(IndexCoding, OfRandomSelectionsIsNearTheirEntropy) {
  const std::map<double, double> limits{{0.0001, 15.2}, {0.001, 11.8}, {0.01, 8.3}, {0.03, 6.8}};
  for (const auto& [density, most] : limits) {
    const auto indices = random_indices(4'000'000, density);
    const double bits =
        8.0 * static_cast<double>(shortest_coding(indices, 4'000'000).bytes) / static_cast<double>(indices.size());
    EXPECT_LE(bits, most) << density;
  }
}

Selection selection_of(const std::vector<std::uint32_t>& indices) {
  const base::CounterRandom random{11};
  Selection selection;
  for (const std::uint32_t i : indices) selection.add(i, static_cast<float>(random.uniform(i) - 0.5));
  return selection;
}

TEST(Packet, BringsIndicesAndValuesAsTheSenderKnowsThem) {
  constexpr std::uint64_t kElements = 30000;
  for (const unsigned bits : {32U, 8U, 4U, 2U, 1U})
    for (const double density : {0.0, 0.00005, 0.01, 1.0}) {
      Selection selection = selection_of(random_indices(kElements, density));
      const Selection exact = selection;
      const ValueCoding coding{.bits = bits};
      std::vector<std::byte> bytes(most_packet_bytes(coding, selection.size(), kElements) + 3);
      const std::size_t size = write_packet(coding, selection, kElements, bytes);
      Arrival arrival;
      const base::ConstBytes rest = read_packet(coding, kElements, base::ConstBytes(bytes).first(size + 3), arrival);
      EXPECT_EQ(rest.size(), 3U);
      EXPECT_TRUE(std::ranges::equal(arrival.indices, exact.indices()));
      EXPECT_TRUE(std::ranges::equal(arrival.values, std::as_const(selection).values())) << bits << " bits";
      // Half a level of the scale. With one bit, only the sign is checked.
      const double most = bits == 32 ? 0 : bits == 1 ? 0.5 : 0.2501 / ((1U << (bits - 1)) - 1);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        EXPECT_LE(std::fabs(arrival.values[i] - exact.values()[i]), most) << bits << " bits";
        if (bits == 1) {
          EXPECT_EQ(std::signbit(arrival.values[i]), std::signbit(exact.values()[i]));
        }
      }
    }
}

TEST(Packet, WithAValueThatIsNotFiniteBringsNoFiniteOne) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Selection selection;
    selection.add(3, 1.0F);
    selection.add(4, bad);
    std::vector<std::byte> bytes(100);
    const ValueCoding coding{.bits = 4};
    const std::size_t size = write_packet(coding, selection, 10, bytes);
    Arrival arrival;
    static_cast<void>(read_packet(coding, 10, base::ConstBytes(bytes).first(size), arrival));
    EXPECT_FALSE(std::isfinite(arrival.values[1]));
  }
}

/// Expects Corrupt, or indices that ascend and are below the number of elements.
void expect_harmless(const ValueCoding& coding, std::uint64_t elements, base::ConstBytes bytes) {
  Arrival arrival;
  try {
    static_cast<void>(read_packet(coding, elements, bytes, arrival));
  } catch (const Corrupt&) {
    return;
  }
  ASSERT_EQ(arrival.indices.size(), arrival.values.size());
  for (std::size_t i = 0; i < arrival.indices.size(); ++i) {
    ASSERT_LT(arrival.indices[i], elements);
    ASSERT_TRUE(i == 0 || arrival.indices[i - 1] < arrival.indices[i]);
  }
}

/// The message without what it is about.
std::string reason_of(const Corrupt& corrupt) {
  const std::string what = corrupt.what();
  const std::size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

/// The indices of these bytes, as text; or why they are refused.
std::string decoded(const IndexPlan& plan, const IndexCount& count, const std::vector<std::byte>& bytes) {
  std::vector<std::uint32_t> indices;
  try {
    decode_indices({plan.coding, plan.parameter, bytes.size()}, count, bytes, indices);
  } catch (const Corrupt& corrupt) {
    return reason_of(corrupt);
  }
  std::string text;
  for (const std::uint32_t index : indices) text += (text.empty() ? "" : " ") + std::to_string(index);
  return text;
}

/// Fields of a number of bits each.
std::vector<std::byte> packed(const std::vector<std::pair<std::uint64_t, unsigned>>& fields) {
  std::vector<std::byte> bytes(8 * fields.size() + 8);
  BitWriter writer(bytes);
  std::uint64_t bits = 0;
  for (const auto& [value, width] : fields) {
    writer.bits(value, width);
    bits += width;
  }
  writer.finish();
  bytes.resize(bytes_of_bits(bits));
  return bytes;
}

struct Coded {
  IndexPlan plan;
  IndexCount count;
  std::vector<std::byte> bytes;
  std::string decoded;  ///< indices or refusal
};

TEST(IndexCoding, TakesTheLastLegalValueAndRefusesTheNextOne) {
  constexpr IndexPlan kRice{IndexCoding::rice, 0}, kRice1{IndexCoding::rice, 1}, kBitmap{IndexCoding::bitmap},
      kBlocks{IndexCoding::blocks16};
  constexpr std::uint64_t kTwoBlocks = 65537;
  const std::string beyond = "an index lies beyond the tensor",
                    ones = "a bitmap has an index beyond the tensor or more bits than its count";
  const std::vector<Coded> all{
      {kRice, {1, 5}, packed({{0b01111, 5}}), "4"},
      {kRice, {1, 5}, packed({{0b011111, 6}}), beyond},
      {kRice, {1, 5}, packed({{0b0111111, 7}}), "a gap is wider than the tensor"},
      {kRice1, {1, 3}, packed({{0b001, 3}}), "2"},
      {kRice1, {1, 3}, packed({{0b101, 3}}), beyond},
      {kRice, {8, 9}, packed({{0, 8}}), "0 1 2 3 4 5 6 7"},
      {kRice, {9, 10}, packed({{0, 8}}), "there are fewer than their count"},
      {kRice, {1, 5}, packed({{0, 8}}), "0"},
      {kRice, {1, 5}, packed({{0, 9}}), "bytes follow their end"},
      {kRice, {8, 9}, packed({{0, 16}}), "bytes follow their end"},
      {kRice, {64, 65}, std::vector<std::byte>(9), "bytes follow their end"},
      {kRice, {1, 5}, packed({{0b10, 8}}), "bytes follow their end"},
      {{IndexCoding::rice, 7}, {1, 300}, packed({{0, 1}, {5, 7}}), "5"},
      {{IndexCoding::rice, 8}, {1, 300}, packed({{0, 1}, {5, 7}}), "a packet ends within a field"},
      {{IndexCoding::rice, 31}, {1, 1U << 31}, packed({{0, 1}, {0x7fff'ffff, 31}}), "2147483647"},
      {{IndexCoding::rice, 32}, {1, 5}, packed({{0, 1}, {0, 32}}), "an unknown parameter"},
      {kBitmap, {1, 5}, packed({{1 << 4, 8}}), "4"},
      {kBitmap, {1, 5}, packed({{1 << 5, 8}}), ones},
      {kBitmap, {1, 5}, packed({{0b11, 8}}), ones},
      {kBitmap, {2, 5}, packed({{0b01, 8}}), "a bitmap has fewer bits than its count"},
      {kBitmap, {1, 8}, packed({{1, 16}}), "a bitmap has the wrong length"},
      {kBitmap, {1, 9}, packed({{1, 8}}), "a bitmap has the wrong length"},
      {kBlocks, {2, kTwoBlocks}, packed({{1, 17}, {65535, 16}, {1, 17}, {0, 16}}), "65535 65536"},
      {kBlocks, {1, kTwoBlocks}, packed({{0, 17}, {1, 17}, {1, 16}}), beyond},
      {kBlocks, {2, 9}, packed({{2, 17}, {3, 16}, {4, 16}}), "3 4"},
      {kBlocks, {2, 9}, packed({{2, 17}, {3, 16}, {3, 16}}), "indices do not ascend"},
      {kBlocks, {1, 9}, packed({{2, 17}, {3, 16}, {4, 16}}), "blocks hold more indices than the packet"},
      {kBlocks, {2, 9}, packed({{1, 17}, {3, 16}}), "blocks hold fewer indices than the packet"},
      {kRice, {5, 5}, {}, "0 1 2 3 4"},
      {kRice, {6, 5}, {}, "their count exceeds the tensor's elements"},
      {kRice, {4, 5}, {}, "there are none"},
      {kRice, {1, 5}, {}, "there are none"},
      {kRice, {0, 5}, {}, ""},
  };
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(decoded(all[i].plan, all[i].count, all[i].bytes), all[i].decoded) << "case " << i;
}

/// The indices that follow a header of bytes; or why they are refused.
std::string read(const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint32_t> indices;
  try {
    const auto rest = read_indices(300, std::as_bytes(std::span(bytes)), indices);
    return std::to_string(indices.size()) + " and " + std::to_string(rest.size());
  } catch (const Corrupt& corrupt) {
    return reason_of(corrupt);
  }
}

// Coding, parameter, count, bytes: 300 elements need no indices, and their count takes two bytes.
TEST(Packet, HeadersAreTakenUpToTheirLimits) {
  EXPECT_EQ(read({0, 0, 0, 0}), "0 and 0");
  EXPECT_EQ(read({2, 0, 0, 0, 9}), "0 and 1") << "the last coding";
  EXPECT_EQ(read({3, 0, 0, 0}), "its index coding is unknown");
  EXPECT_EQ(read({0, 0, 0xac, 2, 0}), "300 and 0");
  EXPECT_EQ(read({0, 0, 0xad, 2, 0}), "their count exceeds the tensor's elements");
  EXPECT_EQ(read({0, 0, 1, 1, 0}), "1 and 0");
  EXPECT_EQ(read({0, 0, 1, 1}), "it is longer than the received bytes");
  EXPECT_EQ(read({0}), "it ends in its header");
  EXPECT_EQ(read({0, 0}), "it ends in its header");
  EXPECT_EQ(read({0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0}), "0 and 0") << "nine bytes";
  EXPECT_EQ(read({0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0}),
            "a number in its header has no end");
  for (const std::size_t count : {127, 128, 129, 300}) {  // numbers of one byte and of two
    std::vector<std::uint32_t> indices(count), found;
    std::iota(indices.begin(), indices.end(), 0U);
    std::vector<std::byte> bytes(most_indices_bytes(count, 300));
    bytes.resize(write_indices(indices, 300, bytes));
    EXPECT_TRUE(read_indices(300, bytes, found).empty());
    EXPECT_EQ(found, indices);
  }
}

// A few bytes must not make a rank allocate much memory.
TEST(IndexCoding, TakesNoMemoryForACountThatItsBytesCannotHold) {
  constexpr std::uint64_t kElements = 200'000'000, kCount = 150'000'000;
  for (const IndexCoding coding : {IndexCoding::rice, IndexCoding::blocks16}) {
    const std::vector<std::byte> bytes(16, std::byte{0});
    std::vector<std::uint32_t> into;
    EXPECT_THROW(decode_indices({coding, 4, bytes.size()}, {kCount, kElements}, bytes, into), Corrupt);
    EXPECT_LE(into.capacity(), bytes.size() * 8);
  }
}

TEST(Packet, DamagedOrCutOffIsCorruptOrHarmless) {
  const base::CounterRandom random{5};
  std::uint64_t draw = 0;
  for (const unsigned bits : {32U, 4U})
    for (const double density : {0.001, 0.02, 0.6}) {
      constexpr std::uint64_t kElements = 5000;
      const ValueCoding coding{.bits = bits};
      Selection selection = selection_of(random_indices(kElements, density));
      std::vector<std::byte> bytes(most_packet_bytes(coding, selection.size(), kElements));
      bytes.resize(write_packet(coding, selection, kElements, bytes));
      for (std::size_t length = 0; length < bytes.size(); ++length) {
        Arrival arrival;
        EXPECT_THROW(std::ignore = read_packet(coding, kElements, base::ConstBytes(bytes).first(length), arrival),
                     Corrupt);
      }
      for (int trial = 0; trial < 5000; ++trial) {
        auto damaged = bytes;
        for (std::uint32_t flips = 1 + random.below(3, draw++); flips > 0; --flips) {
          // Half of the flips hit the header, which has only a few bytes.
          const auto size =
              static_cast<std::uint32_t>(trial % 2 == 0 ? std::min<std::size_t>(damaged.size(), 8) : damaged.size());
          damaged[random.below(size, draw)] ^= std::byte(1 + random.below(255, draw + 1));
          draw += 2;
        }
        expect_harmless(coding, kElements, damaged);
      }
    }
}

}  // namespace
}  // namespace syncopate::compress::sparse
