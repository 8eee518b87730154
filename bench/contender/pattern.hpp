// The question and the answer of a benchmark: whole numbers that every type and every partial sum holds exactly.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace contender {

/// IEEE half precision and bfloat16 as raw words; only whole numbers are ever put in.
struct Half {
  std::uint16_t word;
  friend bool operator==(Half, Half) = default;
};
struct Brain {
  std::uint16_t word;
  friend bool operator==(Brain, Brain) = default;
};

/// Largest n such that 0..n are all exact in T.
template <class T>
constexpr std::uint32_t exact_limit() {
  if constexpr (std::is_same_v<T, Brain>) return 1u << 8;
  if constexpr (std::is_same_v<T, Half>) return 1u << 11;
  return 1u << 24;
}

template <class T>
T represent(std::uint32_t value) {
  if constexpr (std::is_same_v<T, Brain>) {
    return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
  } else if constexpr (std::is_same_v<T, Half>) {
    if (value == 0) return {0};
    // f32 to f16 without rounding: re-bias the exponent from 127 to 15, keep ten of the 23 mantissa bits.
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    return {static_cast<std::uint16_t>((bits >> 13) - ((127u - 15u) << 10))};
  } else {
    return static_cast<T>(value);
  }
}

/// Elements [begin, end) of the full vector, found in a rank's memory from element `at` on.
struct Answer {
  std::size_t at = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Part `index` of `count` elements cut into `parts` pieces whose sizes differ by at most one, larger ones first.
inline Answer even_part(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t base = count / parts, larger = count % parts;
  const std::size_t begin = index * base + std::min(index, larger);
  return {begin, begin, begin + base + (index < larger ? 1 : 0)};
}

/// The question (what rank r puts in) and the answer (what must come out) of one collective.
struct Pattern {
  std::string collective;
  std::string op = "sum";
  std::uint32_t ranks = 1;
  std::uint32_t root = 0;

  /// 1..limit, where even the sum over all ranks stays exact. Averages are made of multiples of the rank count.
  template <class T>
  [[nodiscard]] std::uint32_t input(std::uint32_t rank, std::uint64_t index) const {
    const std::uint32_t step = op == "average" ? ranks : 1;
    const std::uint32_t limit = std::clamp(exact_limit<T>() / ranks / step, 1u, 1021u);
    std::uint64_t mixed = (index + 1) * 0x9E3779B97F4A7C15u + (rank + 1) * 0xD1B54A32D192ED03u;
    mixed = (mixed ^ (mixed >> 31)) * 0xBF58476D1CE4E5B9u;
    return step * (1 + static_cast<std::uint32_t>(mixed >> 40) % limit);
  }

  template <class T>
  [[nodiscard]] std::uint32_t output(std::uint64_t index, std::size_t count) const {
    if (collective == "broadcast") return input<T>(root, index);
    if (collective == "allgather") return input<T>(owner(index, count), index);
    std::uint32_t value = input<T>(0, index);
    for (std::uint32_t rank = 1; rank < ranks; ++rank) {
      const std::uint32_t next = input<T>(rank, index);
      value = op == "min" ? std::min(value, next) : op == "max" ? std::max(value, next) : value + next;
    }
    return op == "average" ? value / ranks : value;
  }

  /// A rank's memory before the call. What a rank has no say in starts as zero, which no answer contains.
  template <class T>
  void ask(std::uint32_t rank, std::span<T> data) const {
    const Answer mine = even_part(data.size(), ranks, rank);
    const bool silent = collective == "broadcast" && rank != root;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const bool mute = silent || (collective == "allgather" && (i < mine.begin || i >= mine.end));
      data[i] = mute ? T{} : represent<T>(input<T>(rank, i));
    }
  }

  template <class T>
  [[nodiscard]] bool right(std::span<const T> data, const Answer& answer, std::size_t count) const {
    for (std::size_t i = answer.begin; i < answer.end; ++i)
      if (!(data[answer.at + i - answer.begin] == represent<T>(output<T>(i, count)))) return false;
    return true;
  }

 private:
  [[nodiscard]] std::uint32_t owner(std::uint64_t index, std::size_t count) const {
    const std::size_t base = count / ranks, larger = count % ranks, wide = larger * (base + 1);
    return static_cast<std::uint32_t>(index < wide ? index / (base + 1) : larger + (index - wide) / base);
  }
};

}  // namespace contender
