// Stochastic gradient descent: the schedule of its rate and its one loop.
#include "update/sgd.hpp"

#include <ATen/Parallel.h>

#include <algorithm>

namespace syncopate::train {

double learning_rate_at(const SgdOptions& options, std::uint64_t step) {
  double rate = options.learning_rate;
  if (step < options.warmup) rate *= static_cast<double>(step + 1) / static_cast<double>(options.warmup);
  for (const std::uint64_t milestone : options.milestones)
    if (step >= milestone) rate *= options.decay;
  return rate;
}

Sgd::Sgd(at::Tensor parameters, SgdOptions options, bool updates)
    : options_(std::move(options)),
      parameters_(std::move(parameters)),
      velocity_(updates ? at::zeros_like(parameters_) : at::empty({0}, at::kFloat)) {}

void Sgd::update(std::size_t first, std::span<float> gradients) {
  const auto rate = static_cast<float>(rate_), momentum = static_cast<float>(options_.momentum);
  const auto weight_decay = static_cast<float>(options_.weight_decay);
  const float ahead = options_.nesterov ? momentum : 1, own = options_.nesterov ? 1 : 0;
  // Of a gradient with momentum all is added to the step, and nothing to the velocity.
  const float gathered = options_.corrected ? 0 : 1, direct = 1 - gathered;
  float* const p = parameters_.data_ptr<float>() + first;
  float* const v = velocity_.data_ptr<float>() + first;
  float* const grad = gradients.data();
  at::parallel_for(0, static_cast<std::int64_t>(gradients.size()), 1 << 16, [=](std::int64_t begin, std::int64_t end) {
#pragma GCC ivdep  // the three memories never overlap
    for (std::int64_t i = begin; i < end; ++i) {
      const float g = gathered * grad[i] + weight_decay * p[i];
      v[i] = momentum * v[i] + g;
      p[i] -= rate * (own * g + ahead * v[i] + direct * grad[i]);
      grad[i] = 0;
    }
  });
}

}  // namespace syncopate::train
