// Prefix code: package-merge for the lengths, canonical words, and the lookup table.
#include "compress/lossless/prefix_code.hpp"

#include <algorithm>
#include <vector>

#include "syncopate/error.hpp"

namespace syncopate::compress::lossless {

namespace {

/// A symbol, or a pair of items of the level below. A level is sorted by weight.
struct Item {
  std::uint64_t weight = 0;
  int first = -1, second = -1;  ///< positions in the level below; second = -1: `first` is a symbol
};
using Level = std::vector<Item>;

bool lighter(const Item& a, const Item& b) { return a.weight < b.weight; }

/// Pairs of neighbours of `below`, merged with the symbols.
Level level_above(const Level& below, const Level& symbols) {
  Level packages;
  for (int i = 0; i + 1 < static_cast<int>(below.size()); i += 2) {
    const auto at = static_cast<std::size_t>(i);
    packages.push_back({below[at].weight + below[at + 1].weight, i, i + 1});
  }
  Level above(packages.size() + symbols.size());
  std::ranges::merge(symbols, packages, above.begin(), lighter);
  return above;
}

std::uint16_t reversed(std::uint32_t word, unsigned length) {
  std::uint32_t turned = 0;
  for (unsigned bit = 0; bit < length; ++bit) turned |= (word >> bit & 1) << (length - 1 - bit);
  return static_cast<std::uint16_t>(turned);
}

}  // namespace

Lengths lengths_of(const Counts& counts) {
  Lengths lengths{};
  Level symbols;
  for (int symbol = 0; symbol < static_cast<int>(kSymbols); ++symbol)
    if (counts[static_cast<std::size_t>(symbol)] > 0)
      symbols.push_back({counts[static_cast<std::size_t>(symbol)], symbol, -1});
  if (symbols.size() == 1) lengths[static_cast<std::size_t>(symbols[0].first)] = 1;
  if (symbols.size() < 2) return lengths;
  std::ranges::stable_sort(symbols, lighter);
  std::vector<Level> levels{symbols};
  while (levels.size() < kMostBits) levels.push_back(level_above(levels.back(), symbols));
  // Expand the 2 (n - 1) lightest items of the top level by level: a symbol's word gets one bit per occurrence.
  std::size_t taken = 2 * (symbols.size() - 1);
  for (std::size_t level = levels.size(); level-- > 0;) {
    std::size_t packages = 0;
    for (std::size_t i = 0; i < taken; ++i) {
      const Item& item = levels[level][i];
      if (item.second < 0)
        ++lengths[static_cast<std::size_t>(item.first)];
      else
        ++packages;
    }
    taken = 2 * packages;
  }
  return lengths;
}

std::array<Word, kSymbols> words_of(const Lengths& lengths) {
  std::array<Word, kSymbols> words{};
  std::uint32_t next = 0;
  for (unsigned length = 1; length <= kMostBits; ++length, next <<= 1)
    for (std::size_t symbol = 0; symbol < kSymbols; ++symbol)
      if (lengths[symbol] == length) words[symbol] = {reversed(next++, length), static_cast<std::uint16_t>(length)};
  return words;
}

void fill(LookupTable& table, const Lengths& lengths) {
  std::uint32_t used = 0;
  for (const std::uint8_t length : lengths) {
    if (length > kMostBits) throw Corrupt("a packet of coded values: a code word is too long");
    if (length > 0) used += 1U << (kMostBits - length);
  }
  if (used > table.size())
    throw Corrupt("a packet of coded values: the lengths of its code words exceed Kraft's bound");
  table.fill({});
  const std::array<Word, kSymbols> words = words_of(lengths);
  for (std::size_t symbol = 0; symbol < kSymbols; ++symbol) {
    const Word word = words[symbol];
    if (word.length == 0) continue;
    for (std::size_t at = word.bits; at < table.size(); at += std::size_t{1} << word.length)
      table[at] = {static_cast<std::uint8_t>(symbol), static_cast<std::uint8_t>(word.length)};
  }
}

}  // namespace syncopate::compress::lossless
