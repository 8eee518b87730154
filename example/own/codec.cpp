// Your own codec: in step t all ranks send the elements t, t + k, t + 2k, ...; feedback keeps the others.
//
//   k = 4, t = 1:   . x . . . x . . . x . .      4 n / k bytes in one all-reduce, without indices
#include "laws.hpp"
#include "ranks.hpp"
#include "syncopate/codec_feedback.hpp"

using namespace syncopate;
using namespace syncopate::compress;

class TurnsCoder final : public Coder {
 public:
  explicit TurnsCoder(const Settings& with) : every_(with.numbers[0]), feedback_(with.feedback) {}
  Round begin(std::span<const Tensor> tensors, const StepInfo& info, std::span<std::byte> wire) override {
    tensors_ = tensors;
    first_ = info.step % every_;
    float* into = payload_ = reinterpret_cast<float*>(wire.data());
    for (const Tensor& tensor : tensors) {
      const Compensated sum(tensor, feedback_);  // the gradient, plus what earlier steps left out
      sum.form({0, sum.size()});
      std::vector<std::uint32_t> indices;
      for (std::size_t i = first_; i < sum.size(); i += every_) indices.push_back(i);
      for (const std::uint32_t i : indices) *into++ = sum.elements()[i];
      sum.sent(indices);
    }
    return {.combine = Combine::additive, .payload = Buffer(std::span(payload_, into)), .ends = true};
  }
  std::optional<Round> next(Answer) override {  // the payload holds the averages
    const float* from = payload_;
    for (const Tensor& tensor : tensors_) {
      const std::span values(static_cast<float*>(tensor.values.data), tensor.values.count);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % every_ == first_ ? *from++ : 0;
    }
    return std::nullopt;
  }

 private:
  std::size_t every_, first_ = 0;
  Feedback feedback_;
  std::span<const Tensor> tensors_;
  float* payload_ = nullptr;
};

constexpr Parameter kEvery[] = {{.name = "every", .most = 1024, .whole = true}};
constexpr Codec kTurns = {
    .name = "turns",
    .combines = {.additive = true},
    .parameter = "4",
    .parameters = kEvery,
    .decodes_alone = false,
    .feedback = FeedbackUse::sound,
    .wire_bytes = [](const Settings&, std::span<const Tensor> tensors) { return elements_of(tensors) * sizeof(float); },
    .coder = [](const Settings& with) -> std::unique_ptr<Coder> { return std::make_unique<TurnsCoder>(with); }};

int main() {
  if (!holds(check_codec(kTurns))) return 1;
  return train_on_ranks({.catalogue = Catalogue::standard().with(kTurns), .coding = {.codec = "turns:4"}});
}
