// Block: counts, prefix code, and four interleaved streams.
#include "compress/lossless/block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/require.hpp"
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

namespace {

constexpr std::size_t kStreams = 4;  ///< independent, so that the processor decodes them in parallel
constexpr std::byte kRaw{0}, kCoded{1};

[[noreturn]] void refuse(const char* what) { throw Corrupt(std::string("a packet of coded values: ") + what); }

std::uint16_t turned(std::uint16_t value) { return std::rotl(value, 1); }
std::uint8_t symbol_of(std::uint16_t value) { return static_cast<std::uint8_t>(turned(value) >> 8); }

Range quarter(std::size_t values, std::size_t stream) { return even_part(values, kStreams, stream); }

/// The header of a coded block.
struct Header {
  std::uint8_t first = 0, last = 0;
  Lengths lengths{};
  std::array<std::uint16_t, kStreams> bytes{};

  [[nodiscard]] std::size_t nibble_bytes() const { return (std::size_t{last} - first + 2) / 2; }
  [[nodiscard]] std::size_t size() const { return 3 + nibble_bytes() + sizeof bytes; }
  void write(std::byte* into) const;
  /// Returns the bytes after the header.
  base::ConstBytes read(base::ConstBytes from);
};

void Header::write(std::byte* into) const {
  *into++ = kCoded;
  *into++ = std::byte{first};
  *into++ = std::byte{last};
  std::memset(into, 0, nibble_bytes());
  for (std::size_t symbol = first; symbol <= last; ++symbol)
    into[(symbol - first) / 2] |= std::byte(lengths[symbol] << (4 * ((symbol - first) % 2)));
  std::memcpy(into + nibble_bytes(), bytes.data(), sizeof bytes);
}

base::ConstBytes Header::read(base::ConstBytes from) {
  if (from.size() < 3) refuse("it ends in its header");
  first = std::to_integer<std::uint8_t>(from[1]);
  last = std::to_integer<std::uint8_t>(from[2]);
  if (first > last || from.size() < size()) refuse("it ends in its header");
  from = from.subspan(3);
  for (std::size_t symbol = first; symbol <= last; ++symbol)
    lengths[symbol] = std::to_integer<std::uint8_t>(from[(symbol - first) / 2] >> (4 * ((symbol - first) % 2))) & 15;
  std::memcpy(bytes.data(), from.data() + nibble_bytes(), sizeof bytes);
  return from.subspan(nibble_bytes() + sizeof bytes);
}

/// Writes the words of `values`. Returns the end of the written bytes.
std::byte* write_stream(std::span<const std::uint16_t> values, const std::array<Word, kSymbols>& words,
                        std::byte* into) {
  std::uint64_t held = 0;
  unsigned count = 0;
  for (const std::uint16_t value : values) {
    const Word word = words[symbol_of(value)];
    held |= std::uint64_t{word.bits} << count;
    count += word.length;
    for (; count >= 32; count -= 32, held >>= 32, into += 4) std::memcpy(into, &held, 4);
  }
  for (; count > 0; count -= std::min(count, 8U), held >>= 8) *into++ = std::byte(held & 0xff);
  return into;
}

/// Reads words. Reads zeros after the end of its bytes; `ended_well` reports this.
class Stream final {
 public:
  explicit Stream(base::ConstBytes from) : at_(from.data()), end_(from.data() + from.size()) {}

  /// Loads enough bits for four words.
  void refill() {
    if (end_ - at_ >= 8) {
      std::uint64_t word;
      std::memcpy(&word, at_, sizeof word);
      held_ |= word << count_;
      at_ += (63 - count_) >> 3;
      count_ |= 56;
      return;
    }
    for (; count_ <= 56 && at_ != end_; count_ += 8) held_ |= std::to_integer<std::uint64_t>(*at_++) << count_;
  }
  [[nodiscard]] std::uint8_t take(const LookupTable& table) {
    const Lookup found = table[held_ & (table.size() - 1)];
    missing_ |= found.length == 0 || found.length > count_;
    held_ >>= found.length;
    count_ -= std::min<unsigned>(found.length, count_);
    return found.symbol;
  }
  /// Whether all words were complete and only the zero padding of the last byte remains.
  [[nodiscard]] bool ended_well() const { return !missing_ && at_ == end_ && count_ < 8 && held_ == 0; }

 private:
  const std::byte* at_;
  const std::byte* const end_;
  std::uint64_t held_ = 0;
  unsigned count_ = 0;  ///< bits in held_
  bool missing_ = false;
};

void put(std::uint16_t& into, std::uint8_t symbol, std::byte low) {
  into = std::rotr(static_cast<std::uint16_t>(symbol << 8 | std::to_integer<unsigned>(low)), 1);
}

/// Reads all streams: four words of each in turn while every quarter has four left, then the rest of each stream.
void read_streams(std::array<Stream, kStreams>& streams, const LookupTable& table, const std::byte* low,
                  std::span<std::uint16_t> into) {
  std::array<std::size_t, kStreams> begin{};
  for (std::size_t s = 0; s < kStreams; ++s) begin[s] = quarter(into.size(), s).begin;
  const std::size_t shared = into.size() / kStreams / 4 * 4;
  for (std::size_t i = 0; i < shared; i += 4) {
    for (Stream& stream : streams) stream.refill();
    for (std::size_t j = i; j < i + 4; ++j)
      for (std::size_t s = 0; s < kStreams; ++s) put(into[begin[s] + j], streams[s].take(table), low[begin[s] + j]);
  }
  for (std::size_t s = 0; s < kStreams; ++s)
    for (std::size_t i = begin[s] + shared; i < quarter(into.size(), s).end; ++i) {
      streams[s].refill();
      put(into[i], streams[s].take(table), low[i]);
    }
}

std::size_t write_raw(std::span<const std::uint16_t> values, base::Bytes into) {
  into[0] = kRaw;
  if (!values.empty()) std::memcpy(into.data() + 1, values.data(), values.size_bytes());
  return most_block_bytes(values.size());
}

Counts counts_of(std::span<const std::uint16_t> values) {
  Counts even{}, odd{};  // neighbours often have the same exponent; two arrays avoid dependent increments
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    ++even[symbol_of(values[i])];
    ++odd[symbol_of(values[i + 1])];
  }
  if (values.size() % 2 == 1) ++even[symbol_of(values.back())];
  for (std::size_t symbol = 0; symbol < kSymbols; ++symbol) even[symbol] += odd[symbol];
  return even;
}

/// Upper bound of the streams' bytes for these counts: each stream is padded to a whole byte.
std::size_t stream_bytes(const Counts& counts, const Lengths& lengths) {
  std::size_t bits = 0;
  for (std::size_t symbol = 0; symbol < kSymbols; ++symbol) bits += std::size_t{counts[symbol]} * lengths[symbol];
  return bits / 8 + kStreams;
}

}  // namespace

std::size_t write_block(std::span<const std::uint16_t> values, base::Bytes into) {
  base::require(values.size() <= kBlock, "a block of {} values; allowed: up to {}", values.size(), kBlock);
  const Counts counts = counts_of(values);
  Header header{.lengths = lengths_of(counts)};
  std::size_t first = 0, last = kSymbols - 1;
  while (first < last && counts[first] == 0) ++first;
  while (last > first && counts[last] == 0) --last;
  header.first = static_cast<std::uint8_t>(first);
  header.last = static_cast<std::uint8_t>(last);
  if (header.size() + values.size() + stream_bytes(counts, header.lengths) >= most_block_bytes(values.size()))
    return write_raw(values, into);
  std::byte* at = into.data() + header.size();
  for (const std::uint16_t value : values) *at++ = std::byte(turned(value) & 0xff);
  const std::array<Word, kSymbols> words = words_of(header.lengths);
  for (std::size_t s = 0; s < kStreams; ++s) {
    const Range range = quarter(values.size(), s);
    std::byte* const end = write_stream(values.subspan(range.begin, range.size()), words, at);
    header.bytes[s] = static_cast<std::uint16_t>(end - at);
    at = end;
  }
  header.write(into.data());
  return static_cast<std::size_t>(at - into.data());
}

base::ConstBytes read_block(base::ConstBytes from, std::span<std::uint16_t> into) {
  if (from.empty() || (from[0] != kRaw && from[0] != kCoded)) refuse("its kind is unknown");
  if (from[0] == kRaw) {
    if (from.size() < most_block_bytes(into.size())) refuse("its values are cut off");
    if (!into.empty()) std::memcpy(into.data(), from.data() + 1, into.size_bytes());
    return from.subspan(most_block_bytes(into.size()));
  }
  Header header;
  from = header.read(from);
  std::size_t needed = into.size();
  for (const std::uint16_t bytes : header.bytes) needed += bytes;
  if (from.size() < needed) refuse("its values are cut off");
  LookupTable table;
  fill(table, header.lengths);
  const std::byte* const low = from.data();
  from = from.subspan(into.size());
  const auto next = [&from, &header](std::size_t s) {
    const base::ConstBytes stream = from.first(header.bytes[s]);
    from = from.subspan(header.bytes[s]);
    return Stream(stream);
  };
  std::array<Stream, kStreams> streams{next(0), next(1), next(2), next(3)};
  read_streams(streams, table, low, into);
  for (const Stream& stream : streams)
    if (!stream.ended_well()) refuse("its streams do not end with its values");
  return from;
}

}  // namespace syncopate::compress::lossless
