// Targets of fuzzing as ordinary tests: every file of their corpus, and mutations of it, is answered or refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fuzz/target.hpp"
#include "random/draw.hpp"
#include "sanitized.hpp"

namespace syncopate::fuzz {

static void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

using Bytes = std::vector<std::byte>;

constexpr int kMutations = test::kSanitized ? 1000 : 10'000;

std::vector<Bytes> corpus_of(std::string_view target) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(CORPUS_FOLDER) / target))
    files.push_back(file.path());
  std::ranges::sort(files);
  std::vector<Bytes> corpus;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    corpus.emplace_back(bytes.begin(), bytes.end());
  }
  return corpus;
}

/// Changes a few places of `bytes`: bits, values at limits, pieces that are cut out, doubled or taken from `other`.
class Mutator final {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}
  [[nodiscard]] std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  [[nodiscard]] Bytes mutated(Bytes bytes, const Bytes& other) {
    for (std::size_t left = 1 + below(4); left > 0; --left) change(bytes, other);
    return bytes;
  }

 private:
  void change(Bytes& bytes, const Bytes& other) {
    static constexpr int kLimits[] = {0, 1, 0x7f, 0x80, 0xff};
    const std::size_t at = below(bytes.size()), length = below(std::min<std::size_t>(bytes.size() - at, 64) + 1);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] ^= std::byte{1} << below(8);
        return;
      case 1:
        return std::fill(begin, end, static_cast<std::byte>(kLimits[below(std::size(kLimits))]));
      case 2:
        bytes.erase(begin, end);
        return;
      case 3: {
        const Bytes piece(begin, end);
        bytes.insert(begin, piece.begin(), piece.end());
        return;
      }
      case 4:
        bytes.resize(at);
        return;
      default:
        bytes.insert(begin, other.begin(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)));
    }
  }
  std::mt19937 random_;
};

std::string hexadecimal(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

class Decoder : public testing::TestWithParam<Target> {};

TEST_P(Decoder, AnswersOrRefusesWhateverComes) {
  const std::vector<Bytes> corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const Bytes& bytes : corpus) EXPECT_NO_THROW(GetParam().run(bytes)) << hexadecimal(bytes);
  for (const std::uint64_t seed : test::seeds(1)) {
    Mutator mutator(static_cast<unsigned>(seed));
    for (int i = 0; i < kMutations && !HasFailure(); ++i) {
      const Bytes bytes = mutator.mutated(corpus[mutator.below(corpus.size())], corpus[mutator.below(corpus.size())]);
      EXPECT_NO_THROW(GetParam().run(bytes))
          << hexadecimal(bytes) << '\n'
          << test::replay("test_fuzz", fmt::format("*/{}", GetParam().name).c_str(), seed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Decoder, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace syncopate::fuzz
