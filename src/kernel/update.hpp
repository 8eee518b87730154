// The loops of optimizers: weights, gradient and state in one pass over their memory.
#pragma once

#include <cstddef>

namespace syncopate::kernel {

// All arrays are f32, have `count` elements and do not overlap; addresses need no alignment. Each element depends only
// on its own operands: one rounding per operation, in the order in which the formulas are written, with nothing fused
// and correctly rounded quotients and roots. A result that is NaN is the one quiet NaN. The physical limit is the
// traffic that each function names, per element.

/// d = gradient + decay weights;  weights -= rate d;  gradient = 0. Moves 16 bytes.
struct Descent {
  float rate, decay;
};
void descend(const Descent& law, std::size_t count, float* weights, float* gradient);

/// d = gradient + decay weights;  velocity = momentum velocity + d;  s = nesterov ? d + momentum velocity : velocity
/// weights -= rate s; gradient = 0. Corrected: the gradient already contains momentum, so that d = decay weights, and
/// the gradient is added to s. Moves 24 bytes.
struct Momentum {
  float rate, decay, momentum;
};
struct MomentumForm {
  bool nesterov, corrected;
};
struct WithVelocity {
  float *weights, *gradient, *velocity;
};
void descend_with_momentum(const Momentum& law, MomentumForm form, std::size_t count, const WithVelocity& memory);

/// velocity = momentum velocity + rate (gradient + decay weights);  weights -= velocity;  gradient = 0. Moves 24 bytes.
void descend_with_scaled_momentum(const Momentum& law, std::size_t count, const WithVelocity& memory);

/// mean = beta1 mean + rest1 g;  square = beta2 square + rest2 (g g)
/// d = (mean_factor mean) / (root_factor sqrt(square) + epsilon)
struct Moments {
  float beta1, rest1, beta2, rest2, mean_factor, root_factor, epsilon;
};
struct WithMoments {
  float *weights, *gradient, *mean, *square;
};
/// g = gradient + decay weights;  weights -= rate d;  gradient = 0. Moves 32 bytes.
void descend_by_moments(const Descent& law, const Moments& moments, std::size_t count, const WithMoments& memory);
/// g = gradient;  weights -= rate (d + decay weights);  gradient = 0. Moves 32 bytes.
void descend_by_moments_decoupled(const Descent& law, const Moments& moments, std::size_t count,
                                  const WithMoments& memory);
/// g = gradient;  gradient = d + decay weights. The weights stay. Moves 28 bytes.
void direction_of_moments(float decay, const Moments& moments, std::size_t count, const WithMoments& memory);

/// g = gradient + decay weights;  square += g g;  weights -= rate (g / (sqrt(square) + epsilon));  gradient = 0.
/// Moves 24 bytes.
struct WithSquares {
  float *weights, *gradient, *square;
};
void descend_by_squares(const Descent& law, float epsilon, std::size_t count, const WithSquares& memory);

}  // namespace syncopate::kernel
