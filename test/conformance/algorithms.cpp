// Every algorithm of the catalogue, on every collective that it offers, proved and compared with a reference.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "base/half.hpp"
#include "conformance/entries.hpp"
#include "ranks.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {
namespace {

using collective::Algorithm;
using namespace std::chrono_literals;  // group timeouts are shorter than the test's, so a hang is reported with its
                                       // place

class EveryAlgorithmRuns : public testing::TestWithParam<test::Entry> {};
class EveryAllreduce : public EveryAlgorithmRuns {};

/// Element i of rank r's input: small numbers from 1, so that every type holds every sum exactly.
double brought(int rank, std::size_t i) {
  return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 3) % 5) + 1;
}

/// Element i of rank r's input to a product: 1 on all ranks but four at most, so that every type holds the product
/// exactly.
double factor(int size, int rank, std::size_t i) {
  const int stride = (size + 3) / 4;
  if ((static_cast<std::size_t>(rank) + i) % static_cast<std::size_t>(stride) != 0) return 1;
  return static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 2) % 3) + 1;
}

double reduced(ReduceOp op, int size, std::size_t i) {
  double sum = 0, product = 1, low = brought(0, i), high = low;
  for (int rank = 0; rank < size; ++rank) {
    const double value = brought(rank, i);
    sum += value;
    product *= factor(size, rank, i);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (op == ReduceOp::min) return low;
  if (op == ReduceOp::max) return high;
  if (op == ReduceOp::product) return product;
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
  if (dtype == DType::u8) put(static_cast<std::uint8_t>(value));
}

/// `value` as the type would hold it, in the first bytes.
std::array<std::byte, 8> stored(DType dtype, double value) {
  std::array<std::byte, 8> bytes{};
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
  Memory memory = Memory::own;
};

/// Lengths for allgather_v: uneven, some of them 0.
std::vector<std::size_t> parts_of(std::size_t count, int ranks) {
  std::vector<std::size_t> parts(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank + 1 < parts.size(); ++rank) {
    parts[rank] = rank % 3 == 1 ? 0 : std::min(count, (rank % 3 + 1) * 5000);
    count -= parts[rank];
  }
  parts.back() = count;
  return parts;
}

/// Elements that rank `from` sends to rank `to` in an alltoall_v: uneven, some 0.
std::size_t sent(const Case& test, int from, int to) {
  const auto weight = static_cast<std::size_t>((from * 5 + to * 3) % 4);
  return weight == 0 ? 0 : weight * test.count / (2 * static_cast<std::size_t>(test.ranks)) + weight;
}

std::size_t sent_before(const Case& test, int from, int to) {
  std::size_t sum = 0;
  for (int other = 0; other < to; ++other) sum += sent(test, from, other);
  return sum;
}

/// Element i of `rank`'s result of an alltoall_v.
double received(const Case& test, int rank, std::size_t i) {
  int from = 0;
  for (; i >= sent(test, from, rank); ++from) i -= sent(test, from, rank);
  return brought(from, sent_before(test, from, rank) + i);
}

/// The rank whose input is element i of the result of an all-gather or an all-to-all.
int bringer_of(const Case& test, std::size_t i) {
  if (test.collective == Collective::alltoall)
    return static_cast<int>(i / (test.count / static_cast<std::size_t>(test.ranks)));
  const auto ranks = static_cast<std::size_t>(test.ranks);
  std::vector<std::size_t> parts;
  if (test.collective == Collective::allgather_v) parts = parts_of(test.count, test.ranks);
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Range part = test.collective == Collective::allgather_v ? Range{begin, begin + parts[rank]}
                                                                  : even_part(test.count, ranks, rank);
    if (i >= part.begin && i < part.end) return static_cast<int>(rank);
    begin = part.end;
  }
  return 0;
}

double expected(const Case& test, int rank, std::size_t i) {
  switch (test.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return brought(test.root, i);
    case Collective::allgather:
    case Collective::allgather_v:
    case Collective::gather:
      return brought(bringer_of(test, i), i);
    case Collective::alltoall: {
      const std::size_t part = test.count / static_cast<std::size_t>(test.ranks);
      return brought(bringer_of(test, i), static_cast<std::size_t>(rank) * part + i % part);
    }
    case Collective::alltoall_v:
      return received(test, rank, i);
    default:
      return reduced(test.op, test.ranks, i);
  }
}

Range owed(const Case& test, int rank) {
  const auto parts = static_cast<std::size_t>(test.ranks), part = static_cast<std::size_t>(rank);
  if (test.collective == Collective::reduce_scatter || test.collective == Collective::scatter)
    return even_part(test.count, parts, part);
  if (test.collective == Collective::alltoall_v) {
    std::size_t sum = 0;
    for (int from = 0; from < test.ranks; ++from) sum += sent(test, from, rank);
    return {0, sum};
  }
  const bool to_root = test.collective == Collective::reduce || test.collective == Collective::gather;
  return (!to_root || rank == test.root) && test.collective != Collective::barrier ? Range{0, test.count} : Range{};
}

void check(const Case& test, int rank, const std::byte* bytes) {
  const std::size_t width = size_of(test.dtype);
  const Range range = owed(test, rank);
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const auto wanted = stored(test.dtype, expected(test, rank, i));
    ASSERT_EQ(std::memcmp(wanted.data(), bytes + i * width, width), 0)
        << name_of(test.dtype) << ' ' << name_of(test.op) << ", " << test.ranks << " ranks, " << test.count
        << " elements, root " << test.root << ", rank " << rank << ", element " << i;
  }
}

/// Sets the lengths of an alltoall_v on `rank`, and resizes the vectors accordingly.
void give_lengths(Call& call, const Case& test, int rank) {
  for (int other = 0; other < test.ranks; ++other) {
    call.parts.push_back(sent(test, rank, other));
    call.out_parts.push_back(sent(test, other, rank));
  }
  call.data.count = sent_before(test, rank, test.ranks);
  call.out.count = owed(test, rank).size();
}

void run(std::vector<std::unique_ptr<Group>>& groups, Case test) {
  if (test.collective == Collective::alltoall) test.count -= test.count % static_cast<std::size_t>(test.ranks);
  test::on_ranks(test.ranks, [&](int rank) {
    const std::size_t width = size_of(test.dtype);
    Group& group = *groups[static_cast<std::size_t>(rank)];
    const auto memory = [&] {
      const std::size_t most = (2 * test.count + 4 * static_cast<std::size_t>(test.ranks)) * width;
      return test.memory == Memory::group ? group.allocate(most) : std::make_shared<std::byte[]>(most);
    };
    const auto bytes = memory(), other = memory();
    const bool uneven = test.collective == Collective::alltoall_v;
    const std::size_t count = uneven ? sent_before(test, rank, test.ranks) : test.count;
    const bool multiplies = test.op == ReduceOp::product;
    for (std::size_t i = 0; i < count; ++i)
      store(bytes.get() + i * width, test.dtype, multiplies ? factor(test.ranks, rank, i) : brought(rank, i));
    const bool two = collective::plan::swaps(test.collective);
    Call call{test.collective, Buffer(bytes.get(), test.count, test.dtype), {}, {}};
    if (two) call.out = Buffer(other.get(), test.count, test.dtype);
    if (test.collective == Collective::allgather_v) call.parts = parts_of(test.count, test.ranks);
    if (uneven) give_lengths(call, test, rank);
    const CollectiveOptions options{test.op, test.root, std::string(test.algorithm->name), "x", {}};
    start(group, std::move(call), options).wait();
    check(test, rank, two ? other.get() : bytes.get());
  });
}

TEST_P(EveryAlgorithmRuns, ComputesWhatTheReferenceDoes) {
  const auto [algorithm, collective] = GetParam();
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17}) {
    if (test::kSanitized && ranks != 1 && ranks != 2 && ranks != 3 && ranks != 5 && ranks != 9) continue;
    auto groups = Group::threads(ranks);
    // Counts cover none, fewer than ranks, uneven shares, several segments.
    for (const std::size_t count : {0UL, 1UL, 2UL, 5UL, 16UL, 1000UL, 70001UL}) {
      if (count > 1000 && ranks > 8) continue;
      for (const int root : test::roots_of(collective, ranks))
        run(groups, {algorithm, collective, ranks, count, DType::f32, ReduceOp::sum, root});
    }
    if (!collective::plan::reduces(collective) || collective == Collective::barrier) continue;
    for (const DType dtype : kDTypes)
      for (const ReduceOp op : kReduceOps) run(groups, {algorithm, collective, ranks, 37, dtype, op, 0});
  }
}

TEST_P(EveryAlgorithmRuns, ComputesWhatTheReferenceDoesInSharedMemory) {
  const auto [algorithm, collective] = GetParam();
  for (const int ranks : {2, 3, 5}) {
    auto groups = test::joined(ranks, {.timeout = 60s, .transport = TransportChoice::shm});
    for (const Memory memory : {Memory::own, Memory::group}) {
      for (const std::size_t count : {0UL, 1UL, 1000UL, 70001UL, 600'001UL}) {
        if (count > 100'000 && (ranks > 2 || test::kSanitized)) continue;
        run(groups, {algorithm, collective, ranks, count, DType::f32, ReduceOp::sum, ranks - 1, memory});
      }
      if (collective::plan::reduces(collective) && collective != Collective::barrier)
        run(groups, {algorithm, collective, ranks, 30'037, DType::bf16, ReduceOp::average, 0, memory});
    }
  }
}

/// Long enough for many frames in flight and for tiles. If a rank shares no memory, there are no tiles, and more loans
/// arrive than are kept.
constexpr std::size_t kLong = test::kSanitized ? 400'003 : 2'000'003;

TEST_P(EveryAllreduce, OfLongVectorsInTheGroupsMemoryIsRight) {
  const auto [algorithm, collective] = GetParam();
  for (const int ranks : {3, 4, 6}) {
    if (test::kSanitized && ranks != 4) continue;
    auto groups = test::joined(ranks, {.timeout = 60s, .transport = TransportChoice::shm});
    for (const std::size_t count : {300'000UL, kLong})
      run(groups, {algorithm, collective, ranks, count, DType::f32, ReduceOp::sum, 0, Memory::group});
  }
  auto mixed = test::joined(5, {.timeout = 60s, .transport = TransportChoice::automatic}, [](GroupOptions& mine) {
    if (mine.rank == 4) mine.transport = TransportChoice::tcp;
  });
  run(mixed, {algorithm, collective, 5, kLong + 8, DType::f32, ReduceOp::sum, 0, Memory::group});
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

INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAlgorithmRuns, testing::ValuesIn(test::all_entries()), test::title);
INSTANTIATE_TEST_SUITE_P(Catalogue, EveryAllreduce, testing::ValuesIn(test::entries_of(Collective::allreduce)),
                         test::title);

}  // namespace
}  // namespace syncopate
