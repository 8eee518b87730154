// Coders: runs the coders of several ranks for the same gradients, answers their rounds in memory, and checks laws.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "compress/codec.hpp"
#include "kernel/reduce.hpp"

namespace syncopate::laws {

using compress::Answer;
using compress::Coder;
using compress::Combine;
using compress::FeedbackUse;
using compress::Round;
using compress::SelectionReport;
using compress::Settings;
using compress::Tensor;

using Values = std::vector<float>;
using Payload = std::vector<std::byte>;

/// A coder's rounds differ from other ranks', or exceed their bytes.
class UnlawfulRound final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void require_lawful(bool condition, const char* flaw) {
  if (!condition) throw UnlawfulRound(flaw);
}

/// The shape of a gradient, equal on all ranks.
struct Shape {
  std::size_t rows = 0, columns = 1;
  std::uint64_t key = 1;
  [[nodiscard]] std::size_t count() const { return rows * columns; }
};

/// Vectors with these numbers of elements and different keys.
inline std::vector<Shape> vectors_of(const std::vector<std::size_t>& elements) {
  std::vector<Shape> shapes;
  for (const std::size_t count : elements) shapes.push_back({count, 1, 77 + shapes.size()});
  return shapes;
}

/// Settings for `name` or `name:parameter`, with residual feedback if it is sound.
inline Settings with_residual(const std::string& name, const Catalogue& catalogue = {}) {
  Settings settings = compress::settings_of(name, catalogue);
  if (settings.codec->feedback >= FeedbackUse::sound) settings.feedback.kind = compress::Feedback::Kind::residual;
  return settings;
}

inline Values floats_of(base::ConstBytes bytes) {
  Values values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// One rank's vectors of a gradient. The next step reads `kept` and writes `next`.
struct Vectors {
  Values values, weights;
  Payload kept, next;
};

struct Rank {
  std::unique_ptr<Coder> coder;
  std::vector<Vectors> vectors;
  std::vector<Tensor> tensors;
  std::size_t wire_bytes = 0;  ///< the guard bytes follow them in `wire`
  Payload wire;
  std::optional<Round> round;
};

class Coders final {
 public:
  /// Gradients are zero and weights are 1.
  Coders(const Settings& settings, const std::vector<Shape>& shapes, int ranks)
      : settings_(settings), shapes_(shapes), ranks_(static_cast<std::size_t>(ranks)) {
    for (Rank& rank : ranks_) {
      rank.coder = compress::coder_of(settings_, true);
      for (const Shape& shape : shapes_)
        rank.vectors.push_back({Values(shape.count()), Values(shape.count(), 1.0F), {}, {}});
    }
  }

  [[nodiscard]] std::size_t size() const { return ranks_.size(); }
  [[nodiscard]] Rank& operator[](std::size_t rank) { return ranks_[rank]; }
  [[nodiscard]] Vectors& at(std::size_t rank, std::size_t tensor = 0) { return ranks_[rank].vectors[tensor]; }
  /// The residual after a step, with feedback `residual`. It follows the codec's own state.
  [[nodiscard]] float residual(std::size_t rank, std::size_t tensor, std::size_t i) {
    const base::ConstBytes residuals =
        base::ConstBytes(at(rank, tensor).kept).last(shapes_[tensor].count() * sizeof(float));
    return floats_of(residuals.subspan(i * sizeof(float), sizeof(float)))[0];
  }
  /// Every rank's payload of a round of the last step.
  [[nodiscard]] const std::vector<Payload>& payloads(std::size_t round) const { return payloads_[round]; }
  [[nodiscard]] std::size_t rounds() const { return payloads_.size(); }

  void fill(const std::function<float(std::size_t rank, std::size_t tensor, std::size_t i)>& value) {
    for (std::size_t rank = 0; rank < size(); ++rank)
      for (std::size_t t = 0; t < shapes_.size(); ++t)
        for (std::size_t i = 0; i < shapes_[t].count(); ++i) at(rank, t).values[i] = value(rank, t, i);
  }

  /// Starts the first round on every rank.
  void begin() {
    payloads_.clear();
    for (std::size_t rank = 0; rank < size(); ++rank) {
      Rank& of = ranks_[rank];
      lay_out(of);
      of.wire_bytes = compress::wire_bytes_of(settings_, of.tensors, true);
      of.wire.assign(of.wire_bytes + kGuard, kMark);
      of.round = of.coder->begin(of.tensors, {steps_, static_cast<int>(rank), static_cast<int>(size())},
                                 base::Bytes(of.wire).first(of.wire_bytes));
    }
    note();
  }
  /// The answers to the current round, by receiving rank, then by sender.
  [[nodiscard]] std::vector<std::vector<Payload>> answers() const {
    std::vector<std::vector<Payload>> answers(size());
    for (std::size_t sender = 0; sender < size(); ++sender) {
      const Round& round = *ranks_[sender].round;
      Payload payload = payload_of(round);
      if (damage && round.combine == Combine::gather) damage(sender, payload);
      for (std::size_t rank = 0; rank < size(); ++rank) answers[rank].push_back(sent_to(rank, round, payload));
    }
    return answers;
  }
  /// Answers one rank; its coder returns the next round.
  void answer(std::size_t rank, const std::vector<Payload>& packets) {
    const std::vector<base::ConstBytes> spans(packets.begin(), packets.end());
    ranks_[rank].round = ranks_[rank].coder->next({.packets = spans});
  }
  /// Answers the current round on every rank.
  void answer_all() {
    if (ranks_[0].round->combine == Combine::additive) average();
    const auto all = ranks_[0].round->combine == Combine::mergeable ? merged() : answers();
    for (std::size_t rank = 0; rank < size(); ++rank) answer(rank, all[rank]);
    note();
  }
  /// Runs all rounds of a step; then `next` becomes `kept`.
  void step() {
    begin();
    while (ranks_[0].round) {
      require_lawful(payloads_.size() <= compress::kMostRounds, "the coder begins more than 1000 rounds in a step");
      answer_all();
    }
    ++steps_;
    for (Rank& rank : ranks_)
      for (Vectors& vectors : rank.vectors) vectors.kept.swap(vectors.next);
  }

  /// Receives the elements that rank 0 sent of the first gradient.
  SelectionReport* report = nullptr;
  /// Damages the payload of a rank before it is gathered or merged.
  std::function<void(std::size_t rank, Payload& payload)> damage;

 private:
  static constexpr std::size_t kGuard = 16;
  static constexpr std::byte kMark{0xA5};

  static Payload payload_of(const Round& round) {
    const auto bytes = round.payload.bytes();
    return {bytes.begin(), bytes.end()};
  }

  void lay_out(Rank& of) const {
    of.tensors.clear();
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      Vectors& vectors = of.vectors[i];
      Tensor tensor{.rows = shapes_[i].rows, .columns = shapes_[i].columns, .key = shapes_[i].key};
      tensor.values = Buffer(std::span(vectors.values));
      if (settings_.codec->wants_weights) tensor.weights = Buffer(std::span(vectors.weights));
      vectors.kept.resize(compress::state_bytes(settings_, tensor, true, static_cast<int>(size())));
      vectors.next.resize(vectors.kept.size());
      tensor.kept = vectors.kept;
      tensor.next = vectors.next;
      if (i == 0 && &of == &ranks_[0]) tensor.report = report;
      of.tensors.push_back(tensor);
    }
  }

  /// Checks that all ranks start the same kind of round, that no payload exceeds wire_bytes, and that no coder wrote
  /// beyond its wire.
  void note() {
    std::vector<Payload> payloads;
    for (const Rank& rank : ranks_) {
      require_lawful(std::all_of(rank.wire.end() - kGuard, rank.wire.end(), [](std::byte b) { return b == kMark; }),
                     "the coder writes beyond the wire_bytes of its wire");
      require_lawful(rank.round.has_value() == ranks_[0].round.has_value(), "ranks take different numbers of rounds");
      if (!rank.round) continue;
      require_lawful(rank.round->combine == ranks_[0].round->combine, "ranks combine a round in different ways");
      payloads.push_back(payload_of(*rank.round));
      const std::byte* const begin = rank.round->payload.bytes().data();
      if (begin < rank.wire.data() || begin >= rank.wire.data() + rank.wire.size()) continue;
      require_lawful(begin + payloads.back().size() <= rank.wire.data() + rank.wire_bytes,
                     "a payload exceeds the wire_bytes of its wire");
    }
    if (!payloads.empty()) payloads_.push_back(std::move(payloads));
  }

  /// Merges along a binomial tree; the first rank's payload is then every rank's answer.
  std::vector<std::vector<Payload>> merged() {
    std::vector<Payload> have;
    for (const Rank& rank : ranks_) have.push_back(payload_of(*rank.round));
    for (std::size_t bit = 1; bit < size(); bit *= 2)
      for (std::size_t rank = 0; rank + bit < size(); rank += 2 * bit) {
        Payload sent = have[rank + bit];
        if (damage) damage(rank + bit, sent);
        const auto bytes = ranks_[rank].round->merger->merge(sent).bytes();
        require_lawful(bytes.size() <= ranks_[rank].round->most_bytes, "a merged payload exceeds its most_bytes");
        have[rank].assign(bytes.begin(), bytes.end());
      }
    if (damage) damage(0, have[0]);
    return std::vector<std::vector<Payload>>(size(), {have[0]});
  }

  static Payload sent_to(std::size_t rank, const Round& round, const Payload& payload) {
    if (round.combine != Combine::scatter) return payload;
    std::size_t begin = 0;
    for (std::size_t before = 0; before < rank; ++before) begin += round.lengths[before];
    const auto part = std::span(payload).subspan(begin, round.lengths[rank]);
    return {part.begin(), part.end()};
  }

  /// Averages all payloads in rank order.
  void average() {
    const Buffer& first = ranks_[0].round->payload;
    Payload sum = payload_of(*ranks_[0].round);
    for (std::size_t rank = 1; rank < size(); ++rank) {
      const Buffer& payload = ranks_[rank].round->payload;
      require_lawful(payload.count == first.count && payload.dtype == first.dtype,
                     "payloads of an additive round differ in length or type");
      kernel::reduce({.dtype = first.dtype}, sum.data(), payload.bytes().data(), first.count);
    }
    kernel::finish({.dtype = first.dtype, .divisor = static_cast<int>(size())}, sum.data(), first.count);
    for (const Rank& rank : ranks_)
      if (!sum.empty()) std::memcpy(rank.round->payload.data, sum.data(), sum.size());
  }

  const Settings settings_;
  const std::vector<Shape> shapes_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<Payload>> payloads_;
  std::uint64_t steps_ = 0;
};

}  // namespace syncopate::laws
