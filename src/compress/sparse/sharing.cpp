// Sharing coder: packs the values that all ranks select, and unpacks their average.
#include "compress/sparse/sharing.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

#include "kernel/select.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

class SharingCoder final : public Coder {
 public:
  SharingCoder(Draw draw, Feedback feedback) : draw_(std::move(draw)), feedback_(feedback) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    wire_ = wire;
    selections_.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) select(tensors[i], info, selections_[i]);
    return packed_round(selections_, wire);
  }

  [[nodiscard]] std::optional<Round> next(Answer /*answer*/) override {
    unpack(selections_, wire_, tensors_);
    return std::nullopt;
  }

  void add_selected(base::ConstBytes payload, const Selected& selected, std::span<float> into) const override {
    std::vector<std::uint32_t> indices;
    draw_({.values = Buffer(into), .key = selected.key}, {.step = selected.step}, indices);
    if (payload.size() != indices.size() * sizeof(float))
      throw Corrupt(fmt::format("{} bytes of values for {} selected elements", payload.size(), indices.size()));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      float value = 0;
      std::memcpy(&value, payload.data() + i * sizeof value, sizeof value);
      into[indices[i]] += value;
    }
  }

 private:
  void select(const Tensor& source, const StepInfo& info, Selection& into) {
    const Compensated tensor(source, feedback_);
    const bool finite = form_all(tensor) < kernel::kNotFinite;
    draw_(source, info, indices_);
    into.clear();
    for (const std::uint32_t i : indices_)
      into.add(i, finite ? tensor.elements()[i] : std::numeric_limits<float>::quiet_NaN());
    tensor.sent(into.indices(), std::as_const(into).values());
    if (source.report != nullptr) source.report->add(into.size(), tensor.size());
  }

  const Draw draw_;
  const Feedback feedback_;
  std::span<const Tensor> tensors_;
  base::Bytes wire_;
  std::vector<Selection> selections_;  ///< by tensor
  std::vector<std::uint32_t> indices_;
};

}  // namespace

std::unique_ptr<Coder> sharing_coder(Draw draw, Feedback feedback) {
  return std::make_unique<SharingCoder>(std::move(draw), feedback);
}

Round packed_round(std::span<const Selection> selections, base::Bytes wire) {
  std::size_t elements = 0;
  for (const Selection& selection : selections) {
    if (selection.size() == 0) continue;
    std::memcpy(wire.data() + elements * sizeof(float), selection.values().data(), selection.values().size_bytes());
    elements += selection.size();
  }
  return {.combine = Combine::additive, .payload = Buffer(wire.data(), elements, DType::f32), .ends = true};
}

void unpack(std::span<const Selection> selections, base::ConstBytes wire, std::span<const Tensor> tensors) {
  const auto* averages = reinterpret_cast<const float*>(wire.data());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values{static_cast<float*>(tensors[i].values.data), tensors[i].values.count};
    std::ranges::fill(values, 0.0F);
    for (const std::uint32_t index : selections[i].indices()) values[index] = *averages++;
  }
}

}  // namespace syncopate::compress::sparse
