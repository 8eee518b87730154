// Storages: each function replaces what the library does at its place, against a reference in f64.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/random.hpp"
#include "kernel/cast.hpp"
#include "server/immediate.hpp"
#include "server/storage.hpp"
#include "thrown.hpp"

namespace syncopate::server {
namespace {

constexpr std::size_t kElements = 5000;  // a server applies 4096 at a time
constexpr double kRate = 0.125;

/// A storage of a test: a catalogue refers to its entry.
struct Own {
  explicit Own(Storages (*storages)(std::span<const double>)) : entry{.name = "own", .storages = storages} {}
  const Storage entry;
  const Catalogue catalogue = Catalogue().with(entry);
};

Setup setup_of(const Own& own, const std::string& consistency, const std::string& codec = "none") {
  return {.tables = {{"table", kElements}},
          .workers = 3,
          .servers = 2,
          .consistency = consistency,
          .storage = "own",
          .coding = {.codec = codec, .dense_below = 1},
          .optimizer = "sgd",
          .hyperparameters = {{"weight_decay", 0}},
          .catalogue = own.catalogue};
}

Setup plain(Setup setup) {
  setup.storage = "plain";
  setup.catalogue = {};
  return setup;
}

void drawn(std::size_t worker, Clock step, std::size_t table, std::span<float> gradient) {
  const base::CounterRandom random{worker, static_cast<std::uint64_t>(step), table};
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = static_cast<float>(std::lround(64 * random.uniform(i)) - 32) / 64;  // sums are exact
}

Values drawn_by(std::size_t worker, Clock step) {
  Values gradient(kElements);
  drawn(worker, step, 0, gradient);
  return gradient;
}

Values weights_after(const Setup& setup, int steps, std::vector<Values> first = {}) {
  ImmediateJob job(setup, std::move(first));
  for (int step = 0; step < steps; ++step) job.step(kRate, drawn);
  job.finish();
  for (std::size_t worker = 1; worker < setup.workers; ++worker)
    EXPECT_EQ(job.weights(worker, 0), job.weights(0, 0)) << worker;
  return job.weights(0, 0);
}

void expect_near(const Values& one, const Values& other, double most = 1e-5) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], other[i], most) << i;
}

TEST(Storages, AddAStepsUpdateToThoseThatAWorkerHasNotSent) {
  const Own doubled([](std::span<const double>) {
    return Storages{.accumulate = [](const BlockView&, std::span<const float> update, std::span<float> accumulated) {
      for (std::size_t i = 0; i < update.size(); ++i) accumulated[i] += 2 * update[i];
    }};
  });
  for (const char* consistency : {"bsp", "ssp:2", "tap"}) {
    Values expected = weights_after(plain(setup_of(doubled, consistency)), 6);
    for (float& weight : expected) weight *= 2;
    expect_near(weights_after(setup_of(doubled, consistency), 6), expected);
  }
}

TEST(Storages, CombineTheUpdatesOfAStepInTheOrderOfWorkers) {
  const Own last([](std::span<const double>) {
    return Storages{.combine = [](const BlockView&, std::span<const std::span<const float>> updates,
                                  std::span<float> combined) { std::ranges::copy(updates.back(), combined.begin()); }};
  });
  for (const char* codec : {"none", "bf16"}) {
    Values expected(kElements);
    for (Clock step = 0; step < 4; ++step) {
      const Values gradient = drawn_by(2, step);
      for (std::size_t i = 0; i < kElements; ++i) expected[i] -= static_cast<float>(kRate) * gradient[i];
    }
    expect_near(weights_after(setup_of(last, "bsp", codec), 4), expected);
  }
}

TEST(Storages, CombineOneUpdateAtATimeWithoutLockstep) {
  const Own doubled([](std::span<const double>) {
    return Storages{
        .combine = [](const BlockView&, std::span<const std::span<const float>> updates, std::span<float> combined) {
          EXPECT_EQ(updates.size(), 1U);
          for (std::size_t i = 0; i < combined.size(); ++i) combined[i] = 2 * updates[0][i];
        }};
  });
  for (const char* codec : {"none", "bf16"}) {
    Values expected = weights_after(plain(setup_of(doubled, "ssp:1", codec)), 6);
    for (float& weight : expected) weight *= 2;
    expect_near(weights_after(setup_of(doubled, "ssp:1", codec), 6), expected);
  }
}

TEST(Storages, WithTheMedianOneWrongWorkerMovesNoWeight) {
  server::Setup setup{.tables = {{"table", kElements}},
                      .workers = 5,
                      .storage = "median",
                      .optimizer = "sgd",
                      .hyperparameters = {{"weight_decay", 0}}};
  ImmediateJob job(setup);
  job.step(kRate, [](std::size_t worker, Clock step, std::size_t table, std::span<float> gradient) {
    if (worker == 3)
      std::ranges::fill(gradient, 1e30F);
    else
      drawn(worker, step, table, gradient);
  });
  job.finish();
  const std::array right{drawn_by(0, 0), drawn_by(1, 0), drawn_by(2, 0), drawn_by(4, 0)};
  for (std::size_t i = 0; i < kElements; ++i) {
    std::array all{right[0][i], right[1][i], right[2][i], right[3][i], 1e30F};
    std::ranges::sort(all);
    ASSERT_FLOAT_EQ(job.weights(0, 0)[i], static_cast<float>(-kRate) * all[2]) << i;
  }
}

TEST(Storages, TheMedianOfAnEvenNumberOfUpdatesIsTheMeanOfTheMiddleTwo) {
  server::Setup setup{.tables = {{"table", 1}}, .workers = 4, .storage = "median", .optimizer = "sgd"};
  setup.hyperparameters = {{"weight_decay", 0}};
  ImmediateJob job(setup);
  job.step(1, [](std::size_t worker, Clock, std::size_t, std::span<float> gradient) {
    gradient[0] = std::array{4.0F, -1.0F, 2.0F, 100.0F}[worker];
  });
  job.finish();
  EXPECT_EQ(job.weights(0, 0)[0], -3);
}

/// v = 0.5 v + g; w = w - rate v
Storages momentum_on_servers(std::span<const double> /*numbers*/) {
  return {.apply =
              [](const BlockView&, std::span<const float> combined, double rate, std::span<float> kept,
                 std::span<float> weights) {
                for (std::size_t i = 0; i < weights.size(); ++i) {
                  kept[i] = 0.5F * kept[i] + combined[i];
                  weights[i] -= static_cast<float>(rate) * kept[i];
                }
              },
          .kept = 1};
}

TEST(Storages, ApplyACombinedUpdateInsteadOfTheRule) {
  const Own own(momentum_on_servers);
  server::Setup with_rule = plain(setup_of(own, "bsp"));
  with_rule.optimizer = "momentum";
  with_rule.hyperparameters = {{"momentum", 0.5}, {"weight_decay", 0}};
  expect_near(weights_after(setup_of(own, "bsp"), 8), weights_after(with_rule, 8));
}

TEST(Storages, ApplyAnUpdateWhenItComesWithoutLockstep) {
  const Own halved([](std::span<const double>) {
    return Storages{.apply = [](const BlockView&, std::span<const float> combined, double rate, std::span<float> kept,
                                std::span<float> weights) {
      EXPECT_EQ(rate, 0);
      EXPECT_TRUE(kept.empty());
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += combined[i] / 2;
    }};
  });
  for (const char* codec : {"none", "bf16"}) {
    Values expected = weights_after(plain(setup_of(halved, "ssp:2", codec)), 6);
    for (float& weight : expected) weight /= 2;
    expect_near(weights_after(setup_of(halved, "ssp:2", codec), 6), expected);
  }
}

TEST(Storages, ThatApplyLeaveNoTrustRatio) {
  const Own own(momentum_on_servers);
  server::Setup setup = setup_of(own, "bsp");
  setup.optimizer = "lars";
  setup.hyperparameters = {};
  EXPECT_FALSE(JobRules(setup).steps_jointly(setup.tables[0]));
  EXPECT_TRUE(JobRules(plain(setup)).steps_jointly(setup.tables[0]));
}

TEST(Storages, AnswerWithOtherWeightsButEndWithTheServers) {
  const Own rounded([](std::span<const double>) {
    return Storages{.answer = [](const BlockView&, std::span<const float> weights, std::span<float> shown) {
      for (std::size_t i = 0; i < weights.size(); ++i) shown[i] = std::round(weights[i] * 4) / 4;
    }};
  });
  for (const char* answers : {"none", "fp16"}) {
    server::Setup setup = setup_of(rounded, "bsp");
    setup.answers = answers;
    ImmediateJob job(setup);
    for (int step = 0; step < 5; ++step) {
      job.step(kRate, drawn);
      if (step == 0) continue;  // the copy is read at the begin of the next step
      for (const float weight : job.weights(1, 0)) ASSERT_EQ(weight, std::round(weight * 4) / 4) << step;
    }
    job.finish();
    EXPECT_EQ(job.weights(1, 0), weights_after(plain(setup_of(rounded, "bsp")), 5)) << answers;
  }
}

TEST(Storages, AdoptWhatArrivesAndEndWithTheServers) {
  const Own half([](std::span<const double>) {
    return Storages{.adopt = [](const BlockView&, std::span<const float> arrived, std::span<float> weights) {
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = (weights[i] + arrived[i]) / 2;
    }};
  });
  for (const char* consistency : {"bsp", "ssp:1"})
    for (const char* answers : {"none", "fp16"}) {
      server::Setup setup = setup_of(half, consistency);
      setup.answers = answers;
      const Values exact = weights_after(plain(setup_of(half, consistency)), 5);
      expect_near(weights_after(setup, 5), exact);  // gradients do not depend on the weights
    }
  std::vector<Values> memory{Values(kElements, 1), Values(kElements, 9), Values(kElements, 5)};
  laws::ImmediateJob job(setup_of(half, "bsp"),
                         [&](std::size_t worker, std::size_t) { return std::span(memory[worker]); });
  ImmediateJob exact(plain(setup_of(half, "bsp")), {Values(kElements, 1)});
  Values expected(kElements, 1);
  EXPECT_EQ(memory, std::vector<Values>(3, expected)) << "the first weights are those of worker 0";
  for (int step = 0; step < 4; ++step) {
    EXPECT_TRUE(job.step(kRate, drawn));
    exact.step(kRate, drawn);
    for (std::size_t i = 0; i < kElements; ++i) expected[i] = (expected[i] + exact.weights(0, 0)[i]) / 2;
    EXPECT_EQ(memory, std::vector<Values>(3, expected)) << step;
  }
}

/// Tables of 16 bits: the memory of one job's workers.
Values weights_in_halves(DType dtype, const std::string& consistency, std::span<const float> first) {
  Setup setup{
      .tables = {{"table", kElements}}, .workers = 2, .servers = 2, .consistency = consistency, .optimizer = "sgd"};
  setup.hyperparameters = {{"weight_decay", 0}};
  std::vector<std::vector<std::uint16_t>> halves(setup.workers, std::vector<std::uint16_t>(kElements));
  const auto bytes_of = [&](std::size_t worker) { return std::as_writable_bytes(std::span(halves[worker])).data(); };
  laws::ImmediateJob job(setup, [&](std::size_t worker, std::size_t) {
    kernel::cast({DType::f32, dtype}, std::as_bytes(first).data(), bytes_of(worker), kElements);
    return Buffer(bytes_of(worker), kElements, dtype);
  });
  for (int step = 0; step < 6; ++step) EXPECT_TRUE(job.step(kRate, drawn));
  EXPECT_TRUE(job.finish());
  EXPECT_EQ(halves[0], halves[1]);
  Values weights(kElements);
  kernel::cast({dtype, DType::f32}, bytes_of(1), std::as_writable_bytes(std::span(weights)).data(), kElements);
  return weights;
}

TEST(Storages, OfTablesOf16BitsKeepTheServersF32) {
  server::Setup setup{.tables = {{"table", kElements}}, .workers = 2, .servers = 2, .optimizer = "sgd"};
  setup.hyperparameters = {{"weight_decay", 0}};
  const Values first(kElements, 1.0F);  // exact in 16 bits
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const char* consistency : {"bsp", "ssp:1"}) {
      setup.consistency = consistency;
      const Values exact = weights_after(setup, 6, {first});
      const Values rounded = weights_in_halves(dtype, consistency, first);
      const double unit = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
      for (std::size_t i = 0; i < kElements; ++i)
        ASSERT_NEAR(rounded[i], exact[i], unit * std::abs(exact[i])) << name_of(dtype) << " " << consistency;
      if (dtype == DType::bf16) {
        EXPECT_NE(rounded, exact);
      }
    }
}

/// Memory of another kind: it holds the negative of each value.
Storages negative(std::span<const double> /*numbers*/) {
  const auto copy = [](const float* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = -from[i];
  };
  return {
      .load = [=](const Buffer& memory,
                  std::span<float> values) { copy(static_cast<float*>(memory.data), values.data(), values.size()); },
      .store = [=](std::span<const float> values,
                   const Buffer& memory) { copy(values.data(), static_cast<float*>(memory.data), values.size()); }};
}

TEST(Storages, ReadAndWriteTheProgramsMemory) {
  const Own own(negative);
  for (const char* consistency : {"bsp", "ssp:1"}) {
    const server::Setup setup = setup_of(own, consistency);
    Values found = weights_after(setup, 6, {Values(kElements, -0.5F)});
    for (float& weight : found) weight = -weight;
    EXPECT_EQ(found, weights_after(plain(setup), 6, {Values(kElements, 0.5F)}));
  }
}

TEST(Storages, AreRefusedIfTheirFunctionsDoNotFitTogether) {
  const auto refused = [](Storages (*storages)(std::span<const double>), const std::vector<std::string>& words) {
    const Own own(storages);
    test::expect_thrown<Misuse>([&] { return storages_of("own", own.catalogue); }, words);
  };
  refused([](std::span<const double>) { return Storages{.load = negative({}).load}; },
          {"storage own has load and no store", "allowed: both or neither"});
  refused([](std::span<const double>) { return Storages{.kept = 1}; }, {"keeps 1 floats", "no apply"});
  refused(
      [](std::span<const double>) {
        Storages own = momentum_on_servers({});
        own.kept = 17;
        return own;
      },
      {"keeps 17 floats", "at most 16"});
  test::expect_thrown<Misuse>([] { return storages_of("plane"); }, {"storage", "plane", "plain", "median"});
  test::expect_thrown<Misuse>([] { return storages_of("plain:3"); }, {"plain", "3"});
}

TEST(Storages, ThatDifferAmongWorkersAreNamed) {
  server::Setup one{.tables = {{"table", 1}}}, other = one;
  other.storage = "median";
  EXPECT_EQ(difference(one, other), "storage is median there and plain here");
  EXPECT_EQ(missing_name(setup_of(Own(negative), "bsp")), "");
  server::Setup unknown = one;
  unknown.storage = "own:3";
  EXPECT_EQ(missing_name(unknown), "storage 'own'");
}

}  // namespace
}  // namespace syncopate::server
