// The loops of optimizers, on the processor's widest vectors: every array is read once and written once.
#include "kernel/update.hpp"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/update.cpp"
#include "hwy/foreach_target.h"  // this file once more for every instruction set but the last
//
#include "kernel/cpu/lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace syncopate::kernel::HWY_NAMESPACE {

using V = hn::Vec<F32>;

HWY_INLINE V set(float value) { return hn::Set(F32(), value); }

// Memory that a law only reads is const, and is not written.
HWY_INLINE void put(V v, float* into) { hn::StoreU(one_nan(v), F32(), into); }
HWY_INLINE void put(V /*v*/, const float* /*into*/) {}
HWY_INLINE void put(const Room& room, float* into, std::size_t count) {
  std::memcpy(into, room.bytes, count * sizeof(float));
}
HWY_INLINE void put(const Room& /*room*/, const float* /*into*/, std::size_t /*count*/) {}

/// Passes one vector of each array through `law`, which changes those that it writes.
template <class Law, class... Memory>
HWY_INLINE void vector_of(const Law& law, Memory*... memory) {
  const auto run = [&](auto... v) HWY_ATTR {
    law(v...);
    (put(v, memory), ...);
  };
  run(hn::LoadU(F32(), memory)...);
}

/// The last elements, fewer than a vector, pass through the same instructions in zeroed rooms.
template <class Law, class... Memory>
HWY_INLINE void few_of(const Law& law, std::size_t count, Memory*... memory) {
  const auto run = [&](auto&&... room) HWY_ATTR {
    vector_of(law, reinterpret_cast<Memory*>(room.bytes)...);
    (put(room, memory, count), ...);
  };
  run(Room(reinterpret_cast<const std::byte*>(memory), count * sizeof(float))...);
}

/// law(memory[i]...) for all i < count. The arrays of one optimizer have equal alignment, so that stores to all are
/// aligned if those to the first are.
template <class Law, class... Memory>
HWY_INLINE void walk(const Law& law, std::size_t count, float* first, Memory*... rest) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  const std::size_t odd = reinterpret_cast<std::uintptr_t>(first) % (lanes * sizeof(float));
  if (odd % sizeof(float) == 0 && odd != 0 && count >= 16 * lanes) {
    i = lanes - odd / sizeof(float);
    few_of(law, i, first, rest...);
  }
  for (; i + lanes <= count; i += lanes) vector_of(law, first + i, (rest + i)...);
  if (i < count) few_of(law, count - i, first + i, (rest + i)...);
}

struct DescentLaw {
  Descent law;
  HWY_INLINE void operator()(V& w, V& g) const {
    const V d = hn::Add(g, hn::Mul(set(law.decay), w));
    w = hn::Sub(w, hn::Mul(set(law.rate), d));
    g = hn::Zero(F32());
  }
};

template <bool nesterov, bool corrected>
struct MomentumLaw {
  Momentum law;
  HWY_INLINE void operator()(V& w, V& g, V& v) const {
    const V momentum = set(law.momentum), decayed = hn::Mul(set(law.decay), w);
    const V d = corrected ? decayed : hn::Add(g, decayed);
    v = hn::Add(hn::Mul(momentum, v), d);
    V by = nesterov ? hn::Add(d, hn::Mul(momentum, v)) : v;
    if (corrected) by = hn::Add(by, g);
    w = hn::Sub(w, hn::Mul(set(law.rate), by));
    g = hn::Zero(F32());
  }
};

struct ScaledMomentumLaw {
  Momentum law;
  HWY_INLINE void operator()(V& w, V& g, V& v) const {
    const V d = hn::Add(g, hn::Mul(set(law.decay), w));
    v = hn::Add(hn::Mul(set(law.momentum), v), hn::Mul(set(law.rate), d));
    w = hn::Sub(w, v);
    g = hn::Zero(F32());
  }
};

HWY_INLINE V advanced(const Moments& m, V g, V& mean, V& square) {
  mean = hn::Add(hn::Mul(set(m.beta1), mean), hn::Mul(set(m.rest1), g));
  square = hn::Add(hn::Mul(set(m.beta2), square), hn::Mul(set(m.rest2), hn::Mul(g, g)));
  const V root = hn::Mul(set(m.root_factor), hn::Sqrt(square));
  return hn::Div(hn::Mul(set(m.mean_factor), mean), hn::Add(root, set(m.epsilon)));
}

struct MomentsLaw {
  Descent law;
  Moments moments;
  HWY_INLINE void operator()(V& w, V& g, V& mean, V& square) const {
    const V d = advanced(moments, hn::Add(g, hn::Mul(set(law.decay), w)), mean, square);
    w = hn::Sub(w, hn::Mul(set(law.rate), d));
    g = hn::Zero(F32());
  }
};

struct DecoupledLaw {
  Descent law;
  Moments moments;
  HWY_INLINE void operator()(V& w, V& g, V& mean, V& square) const {
    const V d = advanced(moments, g, mean, square);
    w = hn::Sub(w, hn::Mul(set(law.rate), hn::Add(d, hn::Mul(set(law.decay), w))));
    g = hn::Zero(F32());
  }
};

struct DirectionLaw {
  float decay;
  Moments moments;
  HWY_INLINE void operator()(V& g, V& mean, V& square, V w) const {
    g = hn::Add(advanced(moments, g, mean, square), hn::Mul(set(decay), w));
  }
};

struct SquaresLaw {
  Descent law;
  float epsilon;
  HWY_INLINE void operator()(V& w, V& g, V& square) const {
    const V d = hn::Add(g, hn::Mul(set(law.decay), w));
    square = hn::Add(square, hn::Mul(d, d));
    w = hn::Sub(w, hn::Mul(set(law.rate), hn::Div(d, hn::Add(hn::Sqrt(square), set(epsilon)))));
    g = hn::Zero(F32());
  }
};

void run_descent(const Descent& law, std::size_t count, float* weights, float* gradient) {
  walk(DescentLaw{law}, count, weights, gradient);
}

void run_momentum(const Momentum& law, MomentumForm form, std::size_t count, const WithVelocity& m) {
  if (form.nesterov && form.corrected)
    walk(MomentumLaw<true, true>{law}, count, m.weights, m.gradient, m.velocity);
  else if (form.nesterov)
    walk(MomentumLaw<true, false>{law}, count, m.weights, m.gradient, m.velocity);
  else if (form.corrected)
    walk(MomentumLaw<false, true>{law}, count, m.weights, m.gradient, m.velocity);
  else
    walk(MomentumLaw<false, false>{law}, count, m.weights, m.gradient, m.velocity);
}

void run_scaled_momentum(const Momentum& law, std::size_t count, const WithVelocity& m) {
  walk(ScaledMomentumLaw{law}, count, m.weights, m.gradient, m.velocity);
}

void run_moments(const Descent& law, const Moments& moments, std::size_t count, const WithMoments& m) {
  walk(MomentsLaw{law, moments}, count, m.weights, m.gradient, m.mean, m.square);
}

void run_decoupled(const Descent& law, const Moments& moments, std::size_t count, const WithMoments& m) {
  walk(DecoupledLaw{law, moments}, count, m.weights, m.gradient, m.mean, m.square);
}

void run_direction(float decay, const Moments& moments, std::size_t count, const WithMoments& m) {
  walk(DirectionLaw{decay, moments}, count, m.gradient, m.mean, m.square, static_cast<const float*>(m.weights));
}

void run_squares(const Descent& law, float epsilon, std::size_t count, const WithSquares& m) {
  walk(SquaresLaw{law, epsilon}, count, m.weights, m.gradient, m.square);
}

}  // namespace syncopate::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace syncopate::kernel {

HWY_EXPORT(run_descent);
HWY_EXPORT(run_momentum);
HWY_EXPORT(run_scaled_momentum);
HWY_EXPORT(run_moments);
HWY_EXPORT(run_decoupled);
HWY_EXPORT(run_direction);
HWY_EXPORT(run_squares);

void descend(const Descent& law, std::size_t count, float* weights, float* gradient) {
  HWY_DYNAMIC_DISPATCH(run_descent)(law, count, weights, gradient);
}
void descend_with_momentum(const Momentum& law, MomentumForm form, std::size_t count, const WithVelocity& memory) {
  HWY_DYNAMIC_DISPATCH(run_momentum)(law, form, count, memory);
}
void descend_with_scaled_momentum(const Momentum& law, std::size_t count, const WithVelocity& memory) {
  HWY_DYNAMIC_DISPATCH(run_scaled_momentum)(law, count, memory);
}
void descend_by_moments(const Descent& law, const Moments& moments, std::size_t count, const WithMoments& memory) {
  HWY_DYNAMIC_DISPATCH(run_moments)(law, moments, count, memory);
}
void descend_by_moments_decoupled(const Descent& law, const Moments& moments, std::size_t count,
                                  const WithMoments& memory) {
  HWY_DYNAMIC_DISPATCH(run_decoupled)(law, moments, count, memory);
}
void direction_of_moments(float decay, const Moments& moments, std::size_t count, const WithMoments& memory) {
  HWY_DYNAMIC_DISPATCH(run_direction)(decay, moments, count, memory);
}
void descend_by_squares(const Descent& law, float epsilon, std::size_t count, const WithSquares& memory) {
  HWY_DYNAMIC_DISPATCH(run_squares)(law, epsilon, count, memory);
}

}  // namespace syncopate::kernel
#endif  // HWY_ONCE
