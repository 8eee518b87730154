// Every rule in f64, element by element, written from its paper: what the shelf's results are compared with.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace syncopate::test {

struct Knobs {
  double momentum = 0.9, decay = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-6, trust = 0.02;
};

using Vector = std::vector<double>;

inline double norm(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

/// One tensor; a and b are velocities or moments.
class Reference final {
 public:
  Reference(const std::vector<float>& start, Knobs knobs, bool spared, bool corrected = false)
      : w(start.begin(), start.end()), k_(knobs), spared_(spared), corrected_(corrected) {
    a_.resize(w.size());
    b_.resize(w.size());
    if (spared) k_.decay = 0;
  }

  void step(const std::string& rule, const std::vector<float>& gradient, double rate, std::uint64_t t) {
    const Vector g(gradient.begin(), gradient.end());
    if (rule == "sgd" || rule == "momentum" || rule == "nesterov") return descend(rule, g, rate);
    if (rule == "lars") return lars(g, rate);
    if (rule == "adagrad") return adagrad(g, rate);
    adam_family(rule, g, rate, static_cast<double>(t));
  }

  Vector w;

 private:
  void descend(const std::string& rule, const Vector& g, double rate) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double whole = g[i] + k_.decay * w[i], own = corrected_ ? k_.decay * w[i] : whole;
      a_[i] = k_.momentum * a_[i] + own;
      double by = a_[i];
      if (rule == "sgd") by = whole;
      if (rule == "nesterov") by = own + k_.momentum * a_[i];
      w[i] -= rate * (corrected_ ? by + g[i] : by);
    }
  }

  /// arXiv:1708.03888, Algorithm 1: local rate, velocity, weights.
  void lars(const Vector& g, double rate) {
    const double of_weights = norm(w), of_gradient = norm(g);
    const bool zero = of_weights == 0 || of_gradient == 0;
    const double local = zero || spared_ ? 1 : k_.trust * of_weights / (of_gradient + k_.decay * of_weights);
    for (std::size_t i = 0; i < w.size(); ++i) {
      a_[i] = k_.momentum * a_[i] + rate * local * (g[i] + k_.decay * w[i]);
      w[i] -= a_[i];
    }
  }

  /// Duchi, Hazan & Singer, Figure 1.
  void adagrad(const Vector& gradient, double rate) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + k_.decay * w[i];
      a_[i] += g * g;
      w[i] -= rate * g / (std::sqrt(a_[i]) + k_.epsilon);
    }
  }

  /// Kingma & Ba, Algorithm 1; Loshchilov & Hutter, Algorithm 2; You et al. 2020, Algorithm 2.
  void adam_family(const std::string& rule, const Vector& gradient, double rate, double t) {
    Vector d(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i] + (rule == "adam" ? k_.decay * w[i] : 0);
      a_[i] = k_.beta1 * a_[i] + (1 - k_.beta1) * g;
      b_[i] = k_.beta2 * b_[i] + (1 - k_.beta2) * g * g;
      const double mean = a_[i] / (1 - std::pow(k_.beta1, t)), square = b_[i] / (1 - std::pow(k_.beta2, t));
      d[i] = mean / (std::sqrt(square) + k_.epsilon) + (rule == "adam" ? 0 : k_.decay * w[i]);
    }
    const double of_weights = norm(w), of_direction = norm(d);
    const bool scaled = rule == "lamb" && !spared_ && of_weights != 0 && of_direction != 0;
    const double ratio = scaled ? of_weights / of_direction : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * ratio * d[i];
  }

  Vector a_, b_;
  Knobs k_;
  bool spared_, corrected_;
};

}  // namespace syncopate::test
