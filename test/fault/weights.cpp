// Lost ranks while weights travel: all others name a rank that dies in the middle of a reduction or a broadcast.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "processes.hpp"
#include "random/draw.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kElements = 300'000;

/// One process's model of two layers; the weights of a step arrive during the next forward pass.
class Model final {
 public:
  explicit Model(Group& group) {
    SynchronizerOptions options{.policy = "wfbp", .exchange = "reduce_broadcast"};
    for (auto& layer : weights_) options.weights.emplace_back(std::span(layer));
    options.update = [this](std::size_t first, std::size_t) {
      auto* gradient = static_cast<float*>(synchronizer_->gradient(first).data);
      for (std::size_t i = 0; i < kElements; ++i) weights_[first][i] -= std::exchange(gradient[i], 0.0F);
    };
    synchronizer_ =
        std::make_unique<Synchronizer>(group, std::vector<Gradient>{{"one", kElements}, {"two", kElements}}, options);
  }
  void step(int step) {
    for (std::size_t layer = 0; step > 0 && layer < 2; ++layer) synchronizer_->wait(layer);
    if (step > 0) synchronizer_->wait();
    for (const std::size_t layer : {1, 0}) {
      static_cast<float*>(synchronizer_->gradient(layer).data)[step] += 1;
      synchronizer_->ready(layer);
    }
  }

 private:
  std::vector<std::vector<float>> weights_ = std::vector(2, std::vector<float>(kElements));
  std::unique_ptr<Synchronizer> synchronizer_;
};

void train(Group& group, int step) {
  static std::unique_ptr<Model> model;  // of this process
  if (step == 0) model = std::make_unique<Model>(group);
  try {
    model->step(step);
  } catch (...) {
    model.reset();  // before the group it uses
    throw;
  }
}

class WhileWeightsTravel : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Rank, WhileWeightsTravel, testing::Values(0, 2));

TEST_P(WhileWeightsTravel, WhoIsKilledIsNamedByEveryOtherRank) {
  const int victim = GetParam();
  std::mt19937 random(static_cast<unsigned>(test::number_from("SYNCOPATE_SEED", 1)));
  const test::Job job(kRanks, train);
  const int witness = (victim + 1) % kRanks;
  ASSERT_TRUE(job.await_steps(witness, std::uniform_int_distribution(3, 20)(random))) << job.ending_of(witness).message;
  const std::int64_t since_ns = test::now_ns();
  job.signal(victim, SIGKILL);
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "PeerLost") << "rank " << rank << ": " << ending.message;
    EXPECT_EQ(ending.rank, rank) << ending.message;
    EXPECT_EQ(ending.peer, victim) << "rank " << rank << ": " << ending.message;
    const std::string operation = ending.operation, tensor = ending.tensor;
    EXPECT_TRUE(operation.starts_with("reduce ") || operation.starts_with("broadcast ")) << operation;
    EXPECT_TRUE(tensor == "one" || tensor == "two") << tensor;
    EXPECT_LE(static_cast<double>(ending.at_ns - since_ns) * 1e-9, 2.0) << "rank " << rank;
  }
}

}  // namespace
}  // namespace syncopate
