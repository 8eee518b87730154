// MSTopK: sends approximately the k largest elements, found by counting the elements above trial thresholds.
// CommLib (Shi et al., MLSys 2021) Algorithm 1, with the corrections in sparse/bisection.hpp.
//
//   v = g + r;  S = all |v| >= t1 and a run of those with t2 <= |v| < t1, ceil(d n) in all;  send (S, v[S]);  r'[S] = 0
//   size:  as for topk: at d = 0.01 about 8.1 + 32 bits per selected element; N - 1 such packets reach every rank
//   reads: 2, and one for each of up to 30 trials; about 16 on normal gradients (topk: little more than 1)
#include "compress/parameters.hpp"
#include "compress/sparse/bisection.hpp"
#include "compress/sparse/coder.hpp"

namespace syncopate::compress::codec {

namespace {

constexpr Parameter kDensity{"density", 0, 1};

bool takes(DType dtype) { return dtype == DType::f32; }

double density_of(const Settings& settings) { return parameters_of(settings, {&kDensity, 1})[0]; }

void check(const Settings& settings) { static_cast<void>(density_of(settings)); }

std::size_t wire_bytes(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = sparse::most_density(settings, density_of(settings));
  return sparse::gathering_bytes(tensors, {}, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::vector<RoundBytes> rounds(const Settings& settings, std::span<const Tensor> tensors) {
  const double density = density_of(settings);
  return sparse::gathering_rounds(tensors, {}, [&](std::size_t n) { return sparse::selected_of(density, n); });
}

std::unique_ptr<Coder> coder(const Settings& settings) {
  const auto select = [settings, density = density_of(settings)](const Compensated& tensor, const Tensor& source,
                                                                 const Moment& moment, sparse::Selection& into) {
    const double now = sparse::density_at(settings, density, moment.step);
    const base::CounterRandom random{source.key, moment.step, static_cast<std::uint64_t>(moment.rank)};
    static_cast<void>(sparse::select_by_bisection(tensor, sparse::selected_of(now, tensor.size()), random, into));
  };
  return sparse::gathering_coder({.select = select, .feedback = settings.feedback});
}

}  // namespace

extern constinit const Codec mstopk{
    .name = "mstopk",
    .summary = "Approximately the largest elements, by counts above trial thresholds: `mstopk:DENSITY`",
    .source = "CommLib Algorithm 1 (MSTopK), errata corrected",
    .combines = {.gather = true},
    .parameter = "0.01",
    .feedback = FeedbackUse::maskable,
    .has_density = true,
    .takes = takes,
    .wire_bytes = wire_bytes,
    .coder = coder,
    .rounds = rounds,
    .check = check,
};

}  // namespace syncopate::compress::codec
