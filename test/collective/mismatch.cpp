// Ranks that disagree, on threads, over TCP and in shared memory: a Mismatch on every rank, and what stays after it.
#include "collective/wrong.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using test::expect_words;
using test::ones;
using test::Wrong;

class Mismatched : public testing::TestWithParam<Wrong> {};

TEST_P(Mismatched, IsAMismatchOnEveryRankThatNamesTheOtherAndLasts) {
  const auto body = [](Group& group) {
    try {
      GetParam().call(group);
      barrier(group);
    } catch (const Mismatch& first) {
      EXPECT_THROW(barrier(group), Mismatch) << "every later call throws it";
      throw;
    }
  };
  auto groups = Group::threads(3, {.timeout = 20s});
  std::vector<std::pair<std::string, std::vector<std::exception_ptr>>> ends{
      {"threads", test::outcomes(3, [&](int rank) { body(*groups[static_cast<std::size_t>(rank)]); })}};
  for (const char* transport : {"tcp", "shm"})
    ends.emplace_back(transport, test::outcomes_over(transport, 3, body, {.timeout = 20s}));
  for (const auto& [transport, failures] : ends)
    for (const std::exception_ptr& failure : failures) {
      SCOPED_TRACE(transport);
      test::expect_thrown<Mismatch>(failure, {"rank 1"});
      test::expect_thrown<Mismatch>(failure, GetParam().words);
    }
}

/// Every rank expects 2 elements from every rank; rank 1 has `first` elements for rank 0.
void swap_one(Group& group, std::size_t first) {
  const std::vector<std::size_t> gives{group.rank() == 1 ? first : 2, 2, 2}, gets(3, 2);
  auto values = ones(gives[0] + 4), out = ones(6);
  alltoall_v(group, {std::span(values), gives}, {std::span(out), gets});
}

/// Rank 1 does something else than the others.
template <class Call>
Wrong odd_one(const char* what, Call call, std::vector<std::string> words = {}) {
  return {what, [call](Group& group) { call(group, group.rank() == 1); }, std::move(words)};
}

INSTANTIATE_TEST_SUITE_P(
    Calls, Mismatched,
    testing::Values(odd_one("count",
                            [](Group& group, bool odd) {
                              auto values = ones(odd ? 100 : 200);
                              allreduce(group, std::span(values));
                            },
                            {"f32 x 100", "f32 x 200"}),
                    odd_one("count_of_a_long_vector",
                            [](Group& group, bool odd) {
                              auto values = ones(odd ? 300'000 : 300'001);
                              allreduce(group, std::span(values));
                            },
                            {"f32 x 300000", "f32 x 300001"}),
                    odd_one("count_of_a_broadcast",
                            [](Group& group, bool odd) {
                              auto values = ones(odd ? 3 : 4);
                              broadcast(group, std::span(values));
                            },
                            {"f32 x 3", "f32 x 4"}),
                    odd_one("count_of_an_alltoall",
                            [](Group& group, bool odd) {
                              auto values = ones(odd ? 3 : 6), out = values;
                              alltoall(group, std::span(values), std::span(out));
                            },
                            {"f32 x 3", "f32 x 6"}),
                    odd_one("parts",
                            [](Group& group, bool odd) {
                              auto values = ones(6);
                              allgather_v(group, std::span(values),
                                          odd ? std::vector<std::size_t>{1, 2, 3} : std::vector<std::size_t>{3, 2, 1});
                            },
                            {"1, 2, 3", "3, 2, 1"}),
                    odd_one("length_that_an_alltoall_v_sends",
                            [](Group& group, bool odd) { swap_one(group, odd ? 5 : 2); }, {"parts of 5, 2, 2"}),
                    odd_one("nothing_that_an_alltoall_v_sends",
                            [](Group& group, bool odd) { swap_one(group, odd ? 0 : 2); }, {"parts of 0, 2, 2"}),
                    odd_one("frames_that_an_alltoall_v_sends",
                            [](Group& group, bool odd) { swap_one(group, odd ? 200'000 : 2); }, {"parts of 200000, 2"}),
                    odd_one("type",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              allreduce(group, Buffer(values.data(), 64, odd ? DType::i32 : DType::f32));
                            },
                            {"i32", "f32"}),
                    odd_one("type_after_a_call_of_equal_length",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              allreduce(group, std::span(values));
                              allreduce(group, Buffer(values.data(), 64, odd ? DType::i32 : DType::f32));
                            },
                            {"i32", "f32"}),
                    odd_one("operation",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              allreduce(group, std::span(values), {.op = odd ? ReduceOp::max : ReduceOp::sum});
                            },
                            {"max", "sum"}),
                    odd_one("root_of_a_broadcast",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              broadcast(group, std::span(values), {.root = odd ? 1 : 0});
                            },
                            {"root 1", "root 0"}),
                    odd_one("root_of_a_reduce",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              reduce(group, std::span(values), {.root = odd ? 2 : 0});
                            },
                            {"root 2", "root 0"}),
                    odd_one("root_of_a_gather",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              gather(group, std::span(values), {.root = odd ? 2 : 0});
                            },
                            {"root 2", "root 0"}),
                    odd_one("root_of_a_scatter",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              scatter(group, std::span(values), {.root = odd ? 2 : 0});
                            },
                            {"root 2", "root 0"}),
                    odd_one("collective",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              if (odd) return broadcast(group, std::span(values));
                              allreduce(group, std::span(values));
                            },
                            {"broadcast", "allreduce"}),
                    odd_one("algorithm",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              allreduce(group, std::span(values), {.algorithm = odd ? "ring" : "mst"});
                            },
                            {"by ring", "by mst"}),
                    odd_one("blocks",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              broadcast(group, std::span(values),
                                        {.algorithm = "linear_pipeline", .tuning = {.blocks = odd ? 2U : 4U}});
                            },
                            {"2 blocks", "4 blocks"}),
                    odd_one("empty",
                            [](Group& group, bool odd) {
                              auto values = ones(odd ? 0 : 10);
                              allreduce(group, std::span(values));
                            },
                            {"f32 x 0", "f32 x 10"}),
                    odd_one("tensor",
                            [](Group& group, bool odd) {
                              auto values = ones(64);
                              allreduce(group, std::span(values), {.name = odd ? "fc1" : "fc2"});
                            },
                            {"fc1", "fc2"})),
    test::wrong_title);

}  // namespace
}  // namespace syncopate
