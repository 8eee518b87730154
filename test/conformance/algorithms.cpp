// Every algorithm of the catalogue, on every collective that it offers, proved and compared with a reference.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "base/half.hpp"
#include "collective/algorithm.hpp"
#include "ranks.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {
namespace {

using collective::Algorithm;
using collective::algorithms;

std::vector<std::pair<const Algorithm*, Collective>> all_entries() {
  std::vector<std::pair<const Algorithm*, Collective>> entries;
  for (const Algorithm* algorithm : algorithms())
    for (const Collective collective : kCollectives)
      if (algorithm->offers(collective)) entries.emplace_back(algorithm, collective);
  return entries;
}

std::vector<std::pair<const Algorithm*, Collective>> allreduce_entries() {
  auto entries = all_entries();
  std::erase_if(entries, [](const auto& entry) { return entry.second != Collective::allreduce; });
  return entries;
}

std::string title(const testing::TestParamInfo<std::pair<const Algorithm*, Collective>>& info) {
  return std::string(info.param.first->name) + "_" + std::string(name_of(info.param.second));
}

class EveryAlgorithm : public testing::TestWithParam<std::pair<const Algorithm*, Collective>> {};
class EveryAllreduce : public EveryAlgorithm {};

TEST_P(EveryAlgorithm, IsProvedForOneToSixtyFourRanks) {
  const auto [algorithm, collective] = GetParam();
  for (int ranks = 1; ranks <= 64; ++ranks)
    for (const int root : {0, ranks / 2, ranks - 1}) {
      const auto plans = plan_collective({collective, std::string(algorithm->name), ranks, root, 0, 0});
      EXPECT_EQ(ranks == 1 ? "" : verify_plans(plans, collective, root), "") << ranks << " ranks, root " << root;
    }
}

/// Element i that rank r brings: small whole numbers, so that every type holds every sum exactly.
double brought(int rank, std::size_t i) {
  return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) - 1;
}

double reduced(ReduceOp op, int size, std::size_t i) {
  double sum = 0, low = brought(0, i), high = low;
  for (int rank = 0; rank < size; ++rank) {
    const double value = brought(rank, i);
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (op == ReduceOp::min) return low;
  if (op == ReduceOp::max) return high;
  return op == ReduceOp::sum ? sum : sum / size;
}

void store(std::byte* at, DType dtype, double value) {
  const auto put = [&](auto element) { std::memcpy(at, &element, sizeof element); };
  if (dtype == DType::f32) put(static_cast<float>(value));
  if (dtype == DType::f64) put(value);
  if (dtype == DType::f16) put(base::to_f16(static_cast<float>(value)));
  if (dtype == DType::bf16) put(base::to_bf16(static_cast<float>(value)));
  if (dtype == DType::i32) put(static_cast<std::int32_t>(value));
  if (dtype == DType::i64) put(static_cast<std::int64_t>(value));
}

/// `value` as the type would hold it.
std::vector<std::byte> stored(DType dtype, double value) {
  std::vector<std::byte> bytes(size_of(dtype));
  store(bytes.data(), dtype, value);
  return bytes;
}

struct Case {
  const Algorithm* algorithm;
  Collective collective;
  int ranks;
  std::size_t count;
  DType dtype;
  ReduceOp op;
  int root;
};

void call(Group& group, const Case& test, Buffer data) {
  const CollectiveOptions options{test.op, test.root, std::string(test.algorithm->name), "x"};
  if (test.collective == Collective::barrier) return barrier(group);
  start(group, test.collective, data, options).wait();
}

double expected(const Case& test, std::size_t i) {
  if (test.collective == Collective::broadcast) return brought(test.root, i);
  if (test.collective != Collective::allgather) return reduced(test.op, test.ranks, i);
  for (int rank = 0;; ++rank) {
    const Range part = even_part(test.count, static_cast<std::size_t>(test.ranks), static_cast<std::size_t>(rank));
    if (i >= part.begin && i < part.end) return brought(rank, i);
  }
}

Range owed(const Case& test, int rank) {
  const auto parts = static_cast<std::size_t>(test.ranks), part = static_cast<std::size_t>(rank);
  if (test.collective == Collective::reduce_scatter) return even_part(test.count, parts, part);
  const bool all = test.collective != Collective::reduce || rank == test.root;
  return all && test.collective != Collective::barrier ? Range{0, test.count} : Range{};
}

void check(const Case& test, int rank, const std::vector<std::byte>& bytes) {
  const std::size_t width = size_of(test.dtype);
  const Range range = owed(test, rank);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const auto wanted = stored(test.dtype, expected(test, i));
    ASSERT_EQ(std::memcmp(wanted.data(), bytes.data() + i * width, width), 0)
        << name_of(test.dtype) << ' ' << name_of(test.op) << ", " << test.ranks << " ranks, " << test.count
        << " elements, root " << test.root << ", rank " << rank << ", element " << i;
  }
}

void run(std::vector<std::unique_ptr<Group>>& groups, const Case& test) {
  test::on_ranks(test.ranks, [&](int rank) {
    const std::size_t width = size_of(test.dtype);
    std::vector<std::byte> bytes(test.count * width);
    for (std::size_t i = 0; i < test.count; ++i) store(bytes.data() + i * width, test.dtype, brought(rank, i));
    call(*groups[static_cast<std::size_t>(rank)], test, Buffer(bytes.data(), test.count, test.dtype));
    check(test, rank, bytes);
  });
}

bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

TEST_P(EveryAlgorithm, ComputesWhatTheReferenceDoes) {
  const auto [algorithm, collective] = GetParam();
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17}) {
    auto groups = Group::threads(ranks);
    // Counts cover none, fewer than ranks, uneven shares, several segments.
    for (const std::size_t count : {0UL, 1UL, 2UL, 5UL, 16UL, 1000UL, 70001UL}) {
      if (count > 1000 && ranks > 8) continue;
      for (const int root : {0, ranks - 1})
        run(groups, {algorithm, collective, ranks, count, DType::f32, ReduceOp::sum, root});
    }
    if (!reduces(collective)) continue;
    for (const DType dtype : kDTypes)
      for (const ReduceOp op : kReduceOps) run(groups, {algorithm, collective, ranks, 37, dtype, op, 0});
  }
}

TEST_P(EveryAlgorithm, ComputesWhatTheReferenceDoesInSharedMemory) {
  const auto [algorithm, collective] = GetParam();
  for (const int ranks : {2, 3, 5}) {
    auto groups = test::joined(ranks, "shm");
    for (const std::size_t count : {0UL, 1UL, 1000UL, 70001UL, 600'001UL}) {
      if (count > 100'000 && ranks > 2) continue;
      run(groups, {algorithm, collective, ranks, count, DType::f32, ReduceOp::sum, ranks - 1});
    }
    if (reduces(collective)) run(groups, {algorithm, collective, ranks, 30'037, DType::bf16, ReduceOp::average, 0});
  }
}

TEST_P(EveryAllreduce, GivesTheSameBitsOnEveryRankAndInEveryRun) {
  const Algorithm* algorithm = GetParam().first;
  for (const int ranks : {2, 3, 7}) {
    std::vector<std::vector<float>> results;
    std::mutex mutex;
    for (int repetition = 0; repetition < 2; ++repetition)
      test::on_groups(ranks, [&, name = std::string(algorithm->name)](Group& group) {
        std::vector<float> values(30011);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = std::sin(static_cast<float>(i) + static_cast<float>(group.rank()) * 0.7F);
        allreduce(group, std::span(values), {.op = ReduceOp::average, .algorithm = name});
        std::lock_guard lock(mutex);
        results.push_back(std::move(values));
      });
    for (const auto& result : results)
      EXPECT_EQ(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)), 0) << ranks << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAlgorithm, testing::ValuesIn(all_entries()), title);
INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAllreduce, testing::ValuesIn(allreduce_entries()), title);

}  // namespace
}  // namespace syncopate
