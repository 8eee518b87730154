// Rounds: the coders of several ranks, whose payloads are answered in memory, one rank after the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "compress/codec.hpp"

namespace syncopate::compress::testing {

using Values = std::vector<float>;

/// A gradient of every rank.
struct Shape {
  std::size_t rows = 0, columns = 1;
  std::uint64_t key = 1;
  [[nodiscard]] std::size_t count() const { return rows * columns; }
};

/// What one rank has of every gradient, and its coder.
struct Rank {
  std::unique_ptr<Coder> coder;
  std::vector<Values> values;
  std::vector<std::vector<std::byte>> kept, next;
  std::vector<std::byte> wire;
  std::vector<Tensor> tensors;
  std::optional<Round> round;
};

class Conversation final {
 public:
  Conversation(const Settings& settings, const std::vector<Shape>& shapes, int ranks) : settings_(settings) {
    for (int rank = 0; rank < ranks; ++rank) {
      Rank& made = ranks_.emplace_back();
      made.coder = coder_of(settings_, true);
      for (const Shape& shape : shapes) {
        Tensor tensor{.rows = shape.rows, .columns = shape.columns, .key = shape.key};
        tensor.values = Buffer(std::span(made.values.emplace_back(shape.count())));
        const std::size_t bytes = state_bytes(settings_, tensor, true, ranks);
        tensor.kept = made.kept.emplace_back(bytes);
        tensor.next = made.next.emplace_back(bytes);
        made.tensors.push_back(tensor);
      }
      made.wire.resize(wire_bytes_of(settings_, made.tensors, true));
    }
  }

  [[nodiscard]] Rank& operator[](std::size_t rank) { return ranks_[rank]; }
  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  void fill(const std::function<float(std::size_t rank, std::size_t tensor, std::size_t i)>& value) {
    for (std::size_t rank = 0; rank < size(); ++rank)
      for (std::size_t t = 0; t < ranks_[rank].values.size(); ++t)
        for (std::size_t i = 0; i < ranks_[rank].values[t].size(); ++i) ranks_[rank].values[t][i] = value(rank, t, i);
  }

  /// Says the first round on every rank.
  void begin() {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      const Moment moment{steps_, static_cast<int>(rank), static_cast<int>(size())};
      ranks_[rank].round = ranks_[rank].coder->begin(ranks_[rank].tensors, moment, ranks_[rank].wire);
      EXPECT_LE(ranks_[rank].round->payload.bytes().size(), ranks_[rank].wire.size());
    }
  }
  /// The answers to the present round, by rank, and in them by sender.
  [[nodiscard]] std::vector<std::vector<std::vector<std::byte>>> answers() const {
    std::vector<std::vector<std::vector<std::byte>>> answers(size());
    for (std::size_t rank = 0; rank < size(); ++rank)
      for (const Rank& sender : ranks_) answers[rank].push_back(sent_to(rank, *sender.round));
    return answers;
  }
  /// Answers one rank; a round says what follows.
  void answer(std::size_t rank, const std::vector<std::vector<std::byte>>& packets) {
    std::vector<base::ConstBytes> spans(packets.begin(), packets.end());
    ranks_[rank].round = ranks_[rank].coder->next(Answer(std::span<const base::ConstBytes>(spans)));
  }
  /// Answers the present round on every rank.
  void answer_all() {
    if (ranks_[0].round->combine == Combine::additive) average();
    const auto all = answers();
    for (std::size_t rank = 0; rank < size(); ++rank) answer(rank, all[rank]);
  }
  /// All rounds of a step, which ends well.
  void step() {
    begin();
    while (ranks_[0].round) answer_all();
    commit();
  }
  void commit() {
    ++steps_;
    for (Rank& rank : ranks_) {
      std::swap(rank.kept, rank.next);
      for (Tensor& tensor : rank.tensors) std::swap(tensor.kept, tensor.next);
    }
  }

 private:
  static std::vector<std::byte> sent_to(std::size_t rank, const Round& round) {
    const std::span<std::byte> bytes = round.payload.bytes();
    if (round.combine != Combine::scatter) return {bytes.begin(), bytes.end()};
    std::size_t begin = 0;
    for (std::size_t before = 0; before < rank; ++before) begin += round.lengths[before];
    const auto part = bytes.subspan(begin, round.lengths[rank]);
    return {part.begin(), part.end()};
  }

  /// Of all payloads, in the order of the ranks, as floats.
  void average() {
    const std::size_t count = ranks_[0].round->payload.count;
    for (std::size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (const Rank& rank : ranks_) sum += static_cast<const float*>(rank.round->payload.data)[i];
      for (const Rank& rank : ranks_)
        static_cast<float*>(rank.round->payload.data)[i] = sum / static_cast<float>(size());
    }
  }

  const Settings settings_;
  std::vector<Rank> ranks_;
  std::uint64_t steps_ = 0;
};

/// The codec by its name and parameter, with a residual if it is to keep one.
inline Settings with_residual(const std::string& name, bool residual = true) {
  Settings settings = settings_of(name);
  if (residual) settings.feedback.kind = Feedback::Kind::residual;
  return settings;
}

inline Values floats_of(const std::vector<std::byte>& bytes) {
  Values values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace syncopate::compress::testing
