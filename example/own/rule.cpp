// Your own optimizer rule: Lion (Chen et al., NeurIPS 2023, algorithm 2), which moves by signs.
//
//   u = sign(b1 m + (1 - b1) g);   w' = w - rate (u + lambda w);   m' = b2 m + (1 - b2) g
#include "syncopate/rule.hpp"

#include <cmath>

#include "ranks.hpp"

using namespace syncopate;
using namespace syncopate::optim;

/// Called for parts of a tensor, on any threads: every weight is treated by itself.
void update(const Step& step, const TensorSlice& part) {
  const auto b1 = static_cast<float>(step.with.beta1), b2 = static_cast<float>(step.with.beta2);
  float* const mean = part.state[0];
  for (std::size_t i = 0; i < part.size(); ++i) {
    float &weight = part.weights[i], &gradient = part.gradient[i];
    const float direction = b1 * mean[i] + (1 - b1) * gradient;
    const float sign = direction == 0 ? 0.0F : std::copysign(1.0F, direction);
    weight -= step.rate() * (sign + step.decay() * weight);
    mean[i] = b2 * mean[i] + (1 - b2) * gradient;
    gradient = 0;
  }
}

constexpr Hyperparameter kTakes[] = {weight_decay(0), beta1(0.9), beta2(0.99)};
constexpr std::string_view kState[] = {"mean"};
constexpr Rule kLion = {.name = "lion", .takes = kTakes, .state = kState, .update = update};

int main() { return train_on_ranks({}, {.rule = "lion", .catalogue = Catalogue::standard().with(kLion)}); }
