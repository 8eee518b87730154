// A fixed threshold: elements that reach it are sent as plus or minus the threshold, in one bit each.
// Strom, Interspeech 2015. The residual keeps the part of an element that exceeds the threshold.
//
//   v = g + r;  S = all |v| >= tau;  send (S, sign v[S]);  r'[S] = v[S] - tau sign v[S], r' = v elsewhere
//   size: 1 bit and the coded index per selected element: at 1 in 100 about 9 bits; N - 1 such packets reach every rank
//   Choose tau above most elements: the residual of an element that always exceeds tau grows without bound.
#include "compress/sparse/coder.hpp"
#include "kernel/select.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kTau[] = {{"tau", 1e-30, 1e30}};
constexpr double kUsualDensity = 0.01;  ///< of the sent elements, if tau suits the gradients

float tau_of(const Settings& settings) { return static_cast<float>(settings.numbers[0]); }

sparse::ValueCoding values_of(const Settings& settings) { return {.bits = 1, .scale = tau_of(settings)}; }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  return sparse::gathering_bytes(tensors, values_of(settings), [](std::size_t n) { return n; });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t selected =
        sparse::selected_of(tensor.density > 0 ? tensor.density : kUsualDensity, tensor.values.count);
    bytes +=
        sparse::gathering_rounds({&tensor, 1}, values_of(settings), [&](std::size_t) { return selected; })[0].bytes;
  }
  return {{Combine::gather, bytes}};
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto select = [least = kernel::magnitude(tau_of(settings))](const Compensated& tensor, const Tensor& /*source*/,
                                                                    const StepInfo& /*info*/, sparse::Selection& into) {
    into.clear();
    sparse::each_chunk(tensor.size(), [&](Range chunk) { into.add_at_least(least, tensor.formed(chunk), chunk); });
  };
  return sparse::gathering_coder({.select = select, .values = values_of(settings), .feedback = settings.feedback});
}

}  // namespace

extern constinit const Codec threshold{
    .name = "threshold",
    .summary = "Elements that reach a threshold, sent as plus or minus the threshold: `threshold:TAU`",
    .source = "Strom, Interspeech 2015",
    .combines = {.gather = true},
    .parameter = "0.01",
    .parameters = kTau,
    .feedback = FeedbackUse::maskable,
    .has_open_density = [](const Settings& /*settings*/) { return true; },
    .takes = takes_f32,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
};

}  // namespace syncopate::compress::codec
