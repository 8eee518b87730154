// Shared work: every rank gets the results of undivided work, each computed once, and errors reach every rank.
#include "syncopate/shared_work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::test {
namespace {

using Tensors = std::vector<std::vector<float>>;

std::vector<std::size_t> sizes_of(const Tensors& tensors) {
  std::vector<std::size_t> sizes;
  for (const auto& tensor : tensors) sizes.push_back(tensor.size());
  return sizes;
}

Tensors drawn(std::size_t tensors) {
  std::mt19937 random(static_cast<unsigned>(tensors));
  std::normal_distribution<float> normal;
  Tensors all;
  for (std::size_t i = 0; i < tensors; ++i) {
    all.emplace_back(1 + random() % 3000);
    for (float& value : all.back()) value = normal(random);
  }
  return all;
}

/// Mean, standard deviation and largest value: results that depend on the order of additions.
void write_statistics(const std::vector<float>& tensor, std::span<double> results) {
  const auto count = static_cast<double>(tensor.size());
  double sum = 0, squares = 0;
  for (const double value : tensor) {
    sum += value;
    squares += value * value;
  }
  results[0] = sum / count;
  results[1] = std::sqrt(squares / count - results[0] * results[0]);
  results[2] = *std::ranges::max_element(tensor);
}

std::vector<double> undivided(const Tensors& tensors) {
  std::vector<double> results(3 * tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) write_statistics(tensors[i], std::span(results).subspan(3 * i, 3));
  return results;
}

TEST(SharedWork, GivesEveryRankTheBitsOfUndividedWorkAndComputesEachTensorOnce) {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 40U}) {
    const Tensors tensors = drawn(count);
    for (int ranks = 1; ranks <= 5; ++ranks) {
      std::vector<std::atomic<int>> calls(count);
      on_groups(ranks, [&](Group& group) {
        const SharedWork work(group, sizes_of(tensors), 3);
        for (int round = 1; round <= 2; ++round) {
          const std::vector<double> results = work.run([&](std::size_t tensor, std::span<double> values) {
            ++calls[tensor];
            write_statistics(tensors[tensor], values);
          });
          EXPECT_EQ(results, undivided(tensors)) << count << " tensors, rank " << group.rank() << " of " << ranks;
        }
      });
      for (const auto& number : calls) EXPECT_EQ(number, 2) << count << " tensors, " << ranks << " ranks";
    }
  }
}

TEST(SharedWork, GivesEqualResultsOverEveryTransport) {
  const Tensors tensors = drawn(9);
  on_every_transport(3, [&](Group& group) {
    const SharedWork work(group, sizes_of(tensors), 3, "statistics");
    EXPECT_EQ(work.results(), 3U);
    EXPECT_EQ(
        work.run([&](std::size_t tensor, std::span<double> values) { write_statistics(tensors[tensor], values); }),
        undivided(tensors));
  });
}

TEST(SharedWork, AFunctionThatThrowsOnOneRankIsAnErrorOfEveryRank) {
  const std::vector<std::size_t> sizes{5, 4, 3};
  auto groups = Group::threads(3, {.timeout = std::chrono::seconds(20)});
  const auto failures = outcomes(3, [&](int rank) {
    const SharedWork work(*groups[static_cast<std::size_t>(rank)], sizes, 1, "statistics");
    static_cast<void>(work.run([](std::size_t tensor, std::span<double> /*values*/) {
      if (tensor == 1) throw std::domain_error("no logarithm of -1");
    }));
  });
  EXPECT_THROW(std::rethrow_exception(failures[1]), std::domain_error);
  for (const std::size_t rank : {0U, 2U})
    EXPECT_EQ(
        test::expect_thrown<RemoteFailure>(failures[rank], {"statistics failed on tensor 1: no logarithm of -1"}).peer,
        1);
}

/// Rank 1 gives `other` and the others `usual`: every rank throws, and the group goes on.
void expect_mismatch(std::pair<std::vector<std::size_t>, std::size_t> usual,
                     std::pair<std::vector<std::size_t>, std::size_t> other, const std::string& text) {
  on_groups(3, [&](Group& group) {
    const auto& [work, results] = group.rank() == 1 ? other : usual;
    test::expect_thrown<Mismatch>([&] { SharedWork(group, work, results); }, {text});
    const SharedWork agreed(group, usual.first, usual.second);
    EXPECT_EQ(agreed.division().items(), usual.first.size());
  });
}

TEST(SharedWork, ThatDiffersBetweenRanksIsAMismatchOfEveryRankThatNamesTheValues) {
  expect_mismatch({{5, 4}, 2}, {{5, 4, 3}, 2}, "the number of tensors is 2 on one rank and 3 on another");
  expect_mismatch({{5, 4}, 2}, {{5, 4}, 1}, "the number of results per tensor is 1 on one rank and 2 on another");
  expect_mismatch({{5, 4}, 2}, {{5, 7}, 2}, "the work of tensor 1 is 4 on one rank and 7 on another");
  expect_mismatch({{5, 0}, 2}, {{5, SIZE_MAX}, 2}, "the work of tensor 1 is");
}

TEST(SharedWork, WithoutResultsIsRefused) {
  on_groups(2, [](Group& group) {
    EXPECT_THROW(SharedWork(group, std::vector<std::size_t>{1}, 0), Misuse);
    barrier(group);
  });
}

TEST(WorkDivision, GivesEachRankAtMostAnEvenShareAndOneItem) {
  std::mt19937 random(7);
  for (int draw = 0; draw < 200; ++draw) {
    std::vector<std::size_t> work(random() % 60);
    for (std::size_t& size : work) size = std::size_t{1} << random() % 20;
    const int ranks = 1 + static_cast<int>(random() % 9);
    const WorkDivision division = WorkDivision::balanced(work, ranks);
    const std::size_t sum = std::accumulate(work.begin(), work.end(), std::size_t{0});
    const std::size_t largest = work.empty() ? 0 : *std::ranges::max_element(work);
    std::vector<int> owners(work.size());
    for (int rank = 0; rank < ranks; ++rank) {
      std::size_t part = 0, smallest = 0;  // the item that was given last
      EXPECT_TRUE(std::ranges::is_sorted(division.of(rank)));
      for (const std::size_t item : division.of(rank)) {
        smallest = part == 0 ? work[item] : std::min(smallest, work[item]);
        part += work[item];
        ++owners[item];
      }
      const std::size_t share = sum / static_cast<std::size_t>(ranks);
      EXPECT_LE(part, share + largest) << "rank " << rank << " of " << ranks;
      EXPECT_LE(part - smallest, share) << "rank " << rank << " of " << ranks << " had its share and got another item";
    }
    EXPECT_TRUE(std::ranges::all_of(owners, [](int owner) { return owner == 1; }));
  }
}

TEST(WorkDivision, SpreadsItemsWithoutWork) {
  const WorkDivision division = WorkDivision::balanced(std::vector<std::size_t>(8), 4);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(division.of(rank).size(), 2U);
}

TEST(WorkDivision, ThatCannotBeIsRefused) {
  const std::vector<int> owners{0, 2};
  EXPECT_THROW(WorkDivision(owners, 2), Misuse);
  EXPECT_THROW(WorkDivision(std::vector<int>{-1}, 2), Misuse);
  EXPECT_THROW(WorkDivision({}, 0), Misuse);
  EXPECT_THROW(static_cast<void>(WorkDivision::balanced({}, 0)), Misuse);
  const WorkDivision division(owners, 3);
  EXPECT_THROW(static_cast<void>(division.of(3)), Misuse);
  std::vector<double> uneven(3);
  EXPECT_THROW(division.gather(uneven, [](auto, auto) {}), Misuse);
}

}  // namespace
}  // namespace syncopate::test
