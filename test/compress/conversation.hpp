// Conversation: the coders of all ranks about one bucket, with answers as an exchange gives them, and what must hold.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "compress/codec.hpp"

namespace syncopate::compress::test {

/// What one rank has of a tensor.
struct Vectors {
  std::vector<float> values, weights;
  std::vector<std::byte> kept, next;
};

class Conversation {
 public:
  /// Tensors of so many elements, with weights of 1 and no gradient, coded with residuals where these are sound.
  Conversation(const std::string& codec, int ranks, std::vector<std::size_t> elements)
      : settings(settings_of(codec)), elements_(std::move(elements)), of_(static_cast<std::size_t>(ranks)) {
    if (settings.codec->feedback >= FeedbackUse::sound) settings.feedback.kind = Feedback::Kind::residual;
    for (Member& member : of_)
      for (const std::size_t count : elements_)
        member.vectors.push_back({std::vector<float>(count), std::vector<float>(count, 1.0F), {}, {}});
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(of_.size()); }
  [[nodiscard]] Vectors& at(int rank, std::size_t tensor = 0) {
    return of_[static_cast<std::size_t>(rank)].vectors[tensor];
  }
  /// After a step.
  [[nodiscard]] float residual(int rank, std::size_t tensor, std::size_t i) {
    float value = 0;
    std::memcpy(&value, at(rank, tensor).kept.data() + i * sizeof value, sizeof value);
    return value;
  }
  /// Every rank's payload of the round in the last step.
  [[nodiscard]] const std::vector<std::vector<std::byte>>& payloads(std::size_t round) const { return rounds_[round]; }
  [[nodiscard]] std::size_t rounds() const { return rounds_.size(); }

  /// All rounds of a step; then what was left counts.
  void step() {
    rounds_.clear();
    std::vector<std::optional<Round>> said;
    for (int rank = 0; rank < ranks(); ++rank) said.push_back(begin(rank));
    while (said.front()) {
      std::vector<std::optional<Round>> answers = answer(said);
      said = std::move(answers);
    }
    ++step_;
    for (Member& member : of_) {
      expect_whole_guard(member);
      for (Vectors& vectors : member.vectors) vectors.kept.swap(vectors.next);
    }
  }

  Settings settings;
  /// Changes what the others get from a rank.
  std::function<void(int rank, std::vector<std::byte>& payload)> damage;

 private:
  struct Member {
    std::vector<Vectors> vectors{};
    std::vector<Tensor> tensors{};
    std::unique_ptr<Coder> coder{};
    std::vector<std::byte> wire{};
    std::size_t wire_bytes = 0;
  };
  static constexpr std::size_t kGuard = 16;
  static constexpr std::byte kMark{0xA5};

  Round begin(int rank) {
    Member& member = of_[static_cast<std::size_t>(rank)];
    member.tensors.clear();
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      Vectors& vectors = member.vectors[i];
      Tensor tensor{.values = Buffer(std::span(vectors.values)), .rows = elements_[i], .key = 77 + i};
      if (settings.codec->wants_weights) tensor.weights = Buffer(std::span(vectors.weights));
      vectors.kept.resize(state_bytes(settings, tensor, true, static_cast<int>(of_.size())));
      vectors.next.resize(vectors.kept.size());
      tensor.kept = vectors.kept;
      tensor.next = vectors.next;
      member.tensors.push_back(tensor);
    }
    if (!member.coder) member.coder = coder_of(settings, true);
    member.wire_bytes = wire_bytes_of(settings, member.tensors, true);
    member.wire.assign(member.wire_bytes + kGuard, kMark);
    return member.coder->begin(member.tensors, {step_, rank, ranks()},
                               base::Bytes(member.wire).first(member.wire_bytes));
  }

  static void expect_whole_guard(const Member& member) {
    for (std::size_t i = 0; i < kGuard; ++i) ASSERT_EQ(member.wire[member.wire_bytes + i], kMark);
  }

  /// Notes the payloads, of which none may be longer than the codec's law.
  void note(const std::vector<std::optional<Round>>& said) {
    auto& payloads = rounds_.emplace_back();
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
      ASSERT_TRUE(said[rank]) << "rank " << rank << " has ended";
      ASSERT_EQ(said[rank]->combine, said[0]->combine);
      const base::Bytes bytes = said[rank]->payload.bytes();
      const std::byte* const wire = of_[rank].wire.data();
      if (bytes.data() >= wire && bytes.data() < wire + of_[rank].wire.size()) {
        ASSERT_LE(bytes.data() + bytes.size(), wire + of_[rank].wire_bytes) << settings.text();
      }
      payloads.emplace_back(bytes.begin(), bytes.end());
    }
  }

  /// An additive round of f32 where it lies, or every rank's payload for every rank.
  std::vector<std::optional<Round>> answer(std::vector<std::optional<Round>>& said) {
    note(said);
    std::vector<std::vector<std::byte>> gathered;
    if (said.front()->combine == Combine::additive) {
      average(said);
    } else {
      EXPECT_EQ(said.front()->combine, Combine::gather);
      gathered = rounds_.back();
      for (int rank = 0; damage && rank < ranks(); ++rank) damage(rank, gathered[static_cast<std::size_t>(rank)]);
    }
    const std::vector<base::ConstBytes> answers(gathered.begin(), gathered.end());
    std::vector<std::optional<Round>> next;
    for (Member& member : of_) next.push_back(member.coder->next(answers));
    return next;
  }

  static void average(const std::vector<std::optional<Round>>& said) {
    const std::size_t count = said.front()->payload.count;
    for (const auto& round : said) ASSERT_EQ(round->payload.count, count);
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (const auto& round : said) sum += static_cast<const float*>(round->payload.data)[i];
      for (const auto& round : said)
        static_cast<float*>(round->payload.data)[i] = sum / static_cast<float>(said.size());
    }
  }

  std::vector<std::size_t> elements_;
  std::vector<Member> of_;  ///< by rank
  std::vector<std::vector<std::vector<std::byte>>> rounds_;
  std::uint64_t step_ = 0;
};

}  // namespace syncopate::compress::test
