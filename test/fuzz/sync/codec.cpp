// Answers of other ranks, before every codec of the shelf: noise, and packets that are almost right.
#include "compress/codec.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

using Bytes = std::vector<std::byte>;

/// A gradient with what its codec keeps of it.
struct Model {
  Model(const compress::Settings& settings, Fields& fields) {
    const Input bytes = fields.take_bytes(4 * (1 + std::size_t{fields.take<std::uint8_t>()}));
    values.resize(std::max<std::size_t>(bytes.size() / sizeof(float), 1));
    std::memcpy(values.data(), bytes.data(), bytes.size() / sizeof(float) * sizeof(float));
    weights = values;
    tensor = {.values = std::span(values), .rows = 1, .columns = values.size()};
    if (settings.codec->wants_weights) tensor.weights = std::span(weights);
    kept.resize(state_bytes(settings, tensor, true, 3));
    next = kept;
    tensor.kept = kept;
    tensor.next = next;
  }
  std::vector<float> values, weights;
  Bytes kept, next;
  compress::Tensor tensor;
};

Bytes packet_like(base::ConstBytes own, Fields& fields) {
  const auto choice = fields.take<std::uint8_t>();
  if (choice % 4 == 0) own = fields.take_bytes(fields.take<std::uint16_t>());
  Bytes packet(own.begin(), own.end());
  for (int changes = choice / 4 % 4; changes > 0 && !packet.empty(); --changes)
    packet[fields.take<std::uint16_t>() % packet.size()] ^= std::byte{fields.take<std::uint8_t>()};
  if (choice >= 192) packet.resize(fields.take<std::uint16_t>() % (packet.size() + 8));
  return packet;
}

/// The answer to a round: in place of an average, or as packets of three ranks; the first is this rank's.
std::vector<Bytes> answers_to(const compress::Round& round, Fields& fields) {
  const base::Bytes own = round.payload.bytes();
  std::vector<Bytes> answers{{own.begin(), own.end()}};
  for (int rank = 1; rank < 3; ++rank) answers.push_back(packet_like(own, fields));
  if (round.combine == compress::Combine::mergeable) {
    for (int rank = 1; rank < 3; ++rank)
      static_cast<void>(round.merger->merge(answers[static_cast<std::size_t>(rank)]));
    answers.resize(2);
    answers.erase(answers.begin());
  }
  if (round.combine != compress::Combine::additive) return answers;
  std::copy_n(answers[1].begin(), std::min(own.size(), answers[1].size()), own.begin());
  answers.resize(1);
  return answers;
}

void converse(const compress::Settings& settings, Fields fields) {
  if (!settings.codec->takes(DType::f32)) return;
  Model model(settings, fields);
  const std::span<const compress::Tensor> tensors(&model.tensor, 1);
  Bytes wire(wire_bytes_of(settings, tensors, true));
  const auto coder = coder_of(settings, true);
  const bool declines = fields.take<std::uint8_t>() % 8 == 0;
  may_refuse<Corrupt>([&] {
    std::optional<compress::Round> round = coder->begin(tensors, {0, 0, 3}, wire);
    while (round) {
      const auto answers = answers_to(*round, fields);
      const std::vector<base::ConstBytes> views(answers.begin(), answers.end());
      round = coder->next({.packets = views, .declined = declines && round->dense_bytes > 0});
    }
  });
}

}  // namespace

void codec(Input input) {
  for (const compress::Codec* codec : compress::codecs()) {
    compress::Settings settings = compress::settings_of(codec->name);
    converse(settings, Fields(input));
    if (codec->feedback != compress::FeedbackUse::sound && codec->feedback != compress::FeedbackUse::maskable) continue;
    settings.feedback.kind = compress::Feedback::Kind::residual;
    converse(settings, Fields(input));
  }
}

}  // namespace syncopate::fuzz::target
