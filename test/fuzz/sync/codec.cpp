// Answers of other ranks, before every codec of the shelf.
#include "compress/codec.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

struct Model {
  explicit Model(const compress::Settings& settings, Fields& fields) {
    const Input bytes = fields.take_bytes(4 * (1 + std::size_t{fields.take<std::uint8_t>()}));
    values.resize(std::max<std::size_t>(bytes.size() / sizeof(float), 1));
    std::memcpy(values.data(), bytes.data(), bytes.size() / sizeof(float) * sizeof(float));
    weights = values;
    tensor = {.values = std::span(values), .rows = 1, .columns = values.size()};
    if (settings.codec->wants_weights) tensor.weights = std::span(weights);
    if (settings.codec->kept_bytes == nullptr) return;
    kept.resize(settings.codec->kept_bytes(settings, tensor));
    next = kept;
    tensor.kept = kept;
    tensor.next = next;
  }
  std::vector<float> values, weights;
  std::vector<std::byte> kept, next;
  compress::Tensor tensor;
};

/// What a round brings: in place of an average, or as packets of three ranks of which the first is this one's.
std::vector<std::vector<std::byte>> answers_to(const compress::Round& round, Fields& fields) {
  const base::Bytes own = round.payload.bytes();
  std::vector<std::vector<std::byte>> answers{{own.begin(), own.end()}};
  for (int rank = 1; rank < 3; ++rank) {
    const Input bytes = fields.take_bytes(fields.take<std::uint16_t>());
    answers.emplace_back(bytes.begin(), bytes.end());
  }
  if (round.combine != compress::Combine::additive) return answers;
  const std::size_t combined = std::min(own.size(), answers[1].size());
  std::copy_n(answers[1].begin(), combined, own.begin());
  answers.resize(1);
  return answers;
}

void converse(const compress::Settings& settings, Fields fields) {
  if (!settings.codec->takes(DType::f32)) return;
  Model model(settings, fields);
  std::vector<std::byte> wire(settings.codec->wire_bytes(settings, std::span(&model.tensor, 1)));
  const auto coder = settings.codec->coder(settings);
  may_refuse<Corrupt>([&] {
    std::optional<compress::Round> round = coder->begin(std::span(&model.tensor, 1), {0, 0, 3}, wire);
    while (round) {
      const auto answers = answers_to(*round, fields);
      const std::vector<base::ConstBytes> views(answers.begin(), answers.end());
      round = coder->next(views);
    }
  });
}

}  // namespace

void codec(Input input) {
  for (const compress::Codec* codec : compress::codecs())
    converse({codec, std::string(codec->parameter)}, Fields(input));
}

}  // namespace syncopate::fuzz::target
