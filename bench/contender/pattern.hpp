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
  return sizeof(T) == 1 ? 255 : 1u << 24;
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

/// Elements [begin, end) of the full vector, found in a rank's memory from element `at` on. Every rank has the same
/// full vector, but for an all-to-all's, which is that of `rank`.
struct VectorPart {
  std::size_t at = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::uint32_t rank = 0;
};

/// Part `index` of `count` elements cut into `parts` pieces whose sizes differ by at most one, larger ones first.
inline VectorPart even_part(std::size_t count, std::size_t parts, std::size_t index) {
  const std::size_t base = count / parts, larger = count % parts;
  const std::size_t begin = index * base + std::min(index, larger);
  return {begin, begin, begin + base + (index < larger ? 1 : 0)};
}

/// The question (what rank r puts in) and the answer (what must come out) of one collective. Vectors are large and are
/// asked and checked between timed stretches, so names are looked up once and an element costs no division.
class Pattern final {
 public:
  Pattern(const std::string& collective, const std::string& op, std::uint32_t ranks, std::uint32_t root)
      : from_root_(collective == "broadcast" || collective == "scatter"),
        from_owner_(collective == "allgather" || collective == "gather"),
        to_each_(collective == "alltoall"),
        least_(op == "min"),
        most_(op == "max"),
        average_(op == "average"),
        product_(op == "product"),
        ranks_(ranks),
        root_(root),
        others_(product_ ? std::bit_ceil((ranks + 3) / 4) - 1 : 0) {}

  template <class T>
  [[nodiscard]] std::uint32_t input(std::uint32_t rank, std::uint64_t index) const {
    return value(scale<T>(), rank, index);
  }
  template <class T>
  [[nodiscard]] std::uint32_t output(std::uint64_t index, std::size_t count, std::uint32_t rank = 0) const {
    return answer(scale<T>(), index, {0, 0, count, rank});
  }

  /// A rank's memory before the call. Elements that the rank does not provide start as zero, which no answer contains.
  template <class T>
  void ask(std::uint32_t rank, std::span<T> data) const {
    const VectorPart all{0, 0, data.size()};
    const VectorPart mine = from_root_ && rank != root_ ? VectorPart{}
                            : from_owner_               ? even_part(data.size(), ranks_, rank)
                                                        : all;
    const Scale scaled = scale<T>();
    std::fill(data.begin(), data.end(), T{});
    for (std::size_t i = mine.begin; i < mine.end; ++i) data[i] = represent<T>(value(scaled, rank, i));
  }

  template <class T>
  [[nodiscard]] bool right(std::span<const T> data, const VectorPart& where, std::size_t count) const {
    const Scale scaled = scale<T>();
    for (std::size_t i = where.begin; i < where.end; ++i)
      if (!(data[where.at + i - where.begin] == represent<T>(answer(scaled, i, {0, 0, count, where.rank}))))
        return false;
    return true;
  }

 private:
  struct Scale {
    std::uint32_t step = 1;
    std::uint32_t limit = 1;
  };

  /// Values are step..step * limit, where even the sum over all ranks stays exact. Averages are made of multiples of
  /// the rank count. At most four factors of a product are larger than 1.
  template <class T>
  [[nodiscard]] Scale scale() const {
    if (product_) return {1, fourth_root(exact_limit<T>())};
    const std::uint32_t step = average_ ? ranks_ : 1;
    return {step, std::clamp(exact_limit<T>() / ranks_ / step, 1u, 1021u)};
  }

  /// Rounded down.
  [[nodiscard]] static constexpr std::uint32_t fourth_root(std::uint32_t power) {
    std::uint32_t root = 1;
    while ((root + 1) * (root + 1) * (root + 1) * (root + 1) <= power) ++root;
    return root;
  }

  [[nodiscard]] std::uint32_t value(const Scale& scaled, std::uint32_t rank, std::uint64_t index) const {
    if (((rank + index) & others_) != 0) return 1;
    std::uint64_t mixed = (index + 1) * 0x9E3779B97F4A7C15u + (rank + 1) * 0xD1B54A32D192ED03u;
    mixed = (mixed ^ (mixed >> 31)) * 0xBF58476D1CE4E5B9u;
    return scaled.step * (1 + static_cast<std::uint32_t>((mixed >> 32) * scaled.limit >> 32));
  }

  /// Element `index` of what comes out on the rank of `whole`.
  [[nodiscard]] std::uint32_t answer(const Scale& scaled, std::uint64_t index, const VectorPart& whole) const {
    if (from_root_) return value(scaled, root_, index);
    if (from_owner_) return value(scaled, owner(index, whole.end), index);
    if (to_each_) {
      const std::uint64_t part = whole.end / ranks_;
      return value(scaled, static_cast<std::uint32_t>(index / part), whole.rank * part + index % part);
    }
    std::uint32_t result = value(scaled, 0, index);
    for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
      const std::uint32_t next = value(scaled, rank, index);
      result = least_     ? std::min(result, next)
               : most_    ? std::max(result, next)
               : product_ ? result * next
                          : result + next;
    }
    return average_ ? result / ranks_ : result;
  }

  [[nodiscard]] std::uint32_t owner(std::uint64_t index, std::size_t count) const {
    const std::size_t base = count / ranks_, larger = count % ranks_, wide = larger * (base + 1);
    return static_cast<std::uint32_t>(index < wide ? index / (base + 1) : larger + (index - wide) / base);
  }

  bool from_root_, from_owner_, to_each_, least_, most_, average_, product_;
  std::uint32_t ranks_, root_;
  std::uint32_t others_;  ///< element i has a factor of rank r that may differ from 1 if r + i has none of these bits
};

}  // namespace contender
