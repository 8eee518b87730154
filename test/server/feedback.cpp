// Momentum correction, local clipping and warm-up with servers, against a reference in f64.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.hpp"
#include "server/immediate.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {
namespace {

using Exact = std::vector<double>;

constexpr std::size_t kCoded = 4000, kPlain = 100, kServers = 2;
constexpr double kRate = 0.1, kMomentum = 0.9, kClip = 15, kDensity = 0.01, kFirstDensity = 0.25;
constexpr std::uint64_t kWarm = 4;

Setup corrected(const std::string& consistency, const std::string& optimizer, double decay) {
  return {.tables = {{"coded", kCoded}, {"plain", kPlain}},
          .workers = 3,
          .servers = kServers,
          .consistency = consistency,
          .coding = {.codec = "topk:0.01",
                     .feedback = {.kind = FeedbackKind::momentum,
                                  .clip_norm = kClip,
                                  .warmup_density = kFirstDensity,
                                  .warmup_steps = kWarm},
                     .dense_below = 1000},
          .optimizer = optimizer,
          .hyperparameters = {{"momentum", kMomentum}, {"weight_decay", decay}}};
}

void drawn(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient) {
  const base::CounterRandom random{worker, static_cast<std::uint64_t>(step), table};
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(random.uniform(i) - 0.5);
}

Exact drawn_exactly(std::size_t worker, Clock step, std::size_t table) {
  Values gradient(table == 0 ? kCoded : kPlain);
  drawn(worker, step, table, gradient);
  return {gradient.begin(), gradient.end()};
}

Exact clipped(Exact gradient) {
  double squares = 0;
  for (const double g : gradient) squares += g * g;
  const double factor = std::min(1.0, kClip / std::sqrt(squares));
  EXPECT_LT(factor, 1) << "the test clips";
  for (double& g : gradient) g *= factor;
  return gradient;
}

/// The largest elements of each server's half, at the density of the step.
std::vector<std::size_t> selected(const Exact& v, Clock step) {
  const double passed = static_cast<double>(step) / static_cast<double>(kWarm);
  const double density = passed >= 1 ? kDensity : kFirstDensity * std::pow(kDensity / kFirstDensity, passed);
  const std::size_t half = v.size() / kServers;
  const auto count = static_cast<std::size_t>(std::ceil(density * static_cast<double>(half)));
  std::vector<std::size_t> all;
  for (std::size_t begin = 0; begin < v.size(); begin += half) {
    std::vector<std::size_t> order(half);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(count), std::greater(),
                             [&](std::size_t i) { return std::fabs(v[i]); });
    all.insert(all.end(), order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

/// The elements that a worker's packets have left out, and its momentum.
struct Left {
  Exact residual = Exact(kCoded), velocity = Exact(kCoded);
};

void expect_near(const Values& weights, const Exact& expected) {
  ASSERT_EQ(weights.size(), expected.size());
  for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_NEAR(weights[i], expected[i], 2e-6) << i;
}

/// Momentum and nesterov with weight decay, which is not corrected: its momentum is the servers'.
void expect_lockstep(const std::string& optimizer, double decay) {
  const bool nesterov = optimizer == "nesterov";
  ImmediateJob job(corrected("bsp", optimizer, decay), {Values(kCoded, 0.5F), Values(kPlain, 0.5F)});
  std::vector<Left> left(3);
  Exact weights(kCoded, 0.5), decaying(kCoded), plain(kPlain, 0.5), velocity(kPlain);
  for (Clock step = 0; step < 12; ++step) {
    job.step(kRate, drawn);
    Exact average(kCoded), mean(kPlain);
    for (std::size_t worker = 0; worker < 3; ++worker) {
      const Exact g = clipped(drawn_exactly(worker, step, 0)), p = drawn_exactly(worker, step, 1);
      auto& [residual, momentum] = left[worker];
      for (std::size_t i = 0; i < kCoded; ++i) {
        momentum[i] = nesterov ? kMomentum * (momentum[i] + g[i]) : kMomentum * momentum[i] + g[i];
        residual[i] += momentum[i] + (nesterov ? g[i] : 0);
      }
      for (const std::size_t i : selected(residual, step)) {
        average[i] += residual[i] / 3;
        residual[i] = momentum[i] = 0;
      }
      for (std::size_t i = 0; i < kPlain; ++i) mean[i] += p[i] / 3;
    }
    for (std::size_t i = 0; i < kCoded; ++i) {
      decaying[i] = kMomentum * decaying[i] + decay * weights[i];
      weights[i] -= kRate * (average[i] + (nesterov ? decay * weights[i] + kMomentum * decaying[i] : decaying[i]));
    }
    for (std::size_t i = 0; i < kPlain; ++i) {
      const double d = mean[i] + decay * plain[i];
      velocity[i] = kMomentum * velocity[i] + d;
      plain[i] -= kRate * (nesterov ? d + kMomentum * velocity[i] : velocity[i]);
    }
  }
  job.finish();
  for (std::size_t worker = 0; worker < 3; ++worker) {
    expect_near(job.weights(worker, 0), weights);
    expect_near(job.weights(worker, 1), plain);
  }
}

TEST(MomentumCorrection, InLockstepIsThatOfDeepGradientCompression) {
  expect_lockstep("momentum", 0.01);
  expect_lockstep("nesterov", 0);
}

/// The momentum is in the worker's own optimizer: what a packet contains starts again without it.
TEST(MomentumCorrection, WithStalenessMasksTheWorkersOwnVelocity) {
  ImmediateJob job(corrected("tap", "momentum", 0));
  std::vector<Left> left(3);
  Exact weights(kCoded), plain(kPlain);
  std::vector<Exact> velocities(3, Exact(kPlain));
  for (Clock step = 0; step < 12; ++step) {
    job.step(kRate, drawn);
    for (std::size_t worker = 0; worker < 3; ++worker) {
      const Exact g = clipped(drawn_exactly(worker, step, 0)), p = drawn_exactly(worker, step, 1);
      auto& [residual, momentum] = left[worker];
      for (std::size_t i = 0; i < kCoded; ++i) {
        momentum[i] = kMomentum * momentum[i] + g[i];
        residual[i] -= kRate * momentum[i] / 3;
      }
      for (const std::size_t i : selected(residual, step)) {
        weights[i] += residual[i];
        residual[i] = momentum[i] = 0;
      }
      for (std::size_t i = 0; i < kPlain; ++i) {
        velocities[worker][i] = kMomentum * velocities[worker][i] + p[i];
        plain[i] -= kRate * velocities[worker][i] / 3;
      }
    }
  }
  job.finish();
  expect_near(job.weights(1, 0), weights);
  expect_near(job.weights(1, 1), plain);
}

std::string refusal(const Setup& setup) {
  try {
    static_cast<void>(JobRules(setup));
    return "allowed";
  } catch (const Misuse& misuse) {
    return misuse.what();
  }
}

TEST(MomentumCorrection, IsRefusedWithWhatCannotUseIt) {
  EXPECT_EQ(refusal(corrected("bsp", "momentum", 0)), "allowed");
  server::Setup setup = corrected("ssp:3", "adamw", 0);
  setup.hyperparameters.clear();
  EXPECT_EQ(refusal(setup),
            "optimizer adamw with feedback momentum: it cannot use gradients that already contain momentum; allowed: "
            "momentum, nesterov");
  setup = corrected("bsp", "momentum", 0);
  setup.coding.codec = "fp16";
  EXPECT_EQ(refusal(setup).substr(0, 60), "feedback momentum with codec fp16: its only loss is rounding");
  setup.coding.feedback.kind = FeedbackKind::automatic;
  EXPECT_EQ(refusal(setup), "local clipping to 15 without feedback; allowed: with feedback residual or momentum");
  setup.coding.feedback.clip_norm = 0;
  EXPECT_EQ(refusal(setup), "warm-up with codec fp16, which has no density; allowed: without warm-up");
}

TEST(Setups, ThatDifferInFeedbackNameTheDifference) {
  const server::Setup one = corrected("bsp", "momentum", 0);
  EXPECT_EQ(difference(one, server::Setup::of(one.bytes())), "");
  server::Setup other = one;
  other.coding.feedback.clip_norm = 2;
  EXPECT_EQ(difference(one, server::Setup::of(other.bytes())), "feedback.clip_norm is 2 there and 15 here");
  other = one;
  other.coding.feedback.warmup_steps = 5;
  EXPECT_EQ(difference(one, server::Setup::of(other.bytes())), "feedback.warmup_steps is 5 there and 4 here");
}

}  // namespace
}  // namespace syncopate::server
