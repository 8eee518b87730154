// Wrong use on threads, over TCP and in shared memory: the named error on every rank, and what stays after it.
#include <gtest/gtest.h>

#include "ranks.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

struct Wrong {
  std::string what;
  std::function<void(Group&)> call;
  std::vector<std::string> words{};  ///< that the message has, on every rank
  friend void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.what; }
};

std::string title(const testing::TestParamInfo<Wrong>& info) { return info.param.what; }

std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1); }

void expect_words(const Error& error, const std::vector<std::string>& words, const std::string& transport) {
  for (const std::string& word : words)
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
        << transport << ": " << word << " in: " << error.what();
}

class Misused : public testing::TestWithParam<Wrong> {};

TEST_P(Misused, IsMisuseOnEveryRankThatNamesWhatIsAllowedAndHarmsNothing) {
  test::on_every_transport(3, [](Group& group) {
    try {
      GetParam().call(group);
      ADD_FAILURE() << group.transport() << ": no error on rank " << group.rank();
    } catch (const Misuse& misuse) {
      expect_words(misuse, GetParam().words, group.transport());
    }
    auto values = ones(8);
    allreduce(group, std::span(values));
    EXPECT_EQ(values[7], 3) << group.transport();
  });
}

Wrong rooted(const char* name, void (*call)(Group&, Buffer, const CollectiveOptions&), int root) {
  return {std::string(name) + (root < 0 ? "_root_below" : "_root_beyond"),
          [=](Group& group) {
            auto values = ones(9);
            call(group, std::span(values), {.root = root});
          },
          {name, "root is " + std::to_string(root), "allowed: 0 to 2"}};
}

Wrong allreduce_with(const char* what, CollectiveOptions options, std::vector<std::string> words) {
  return {what,
          [options = std::move(options)](Group& group) {
            auto values = ones(9);
            allreduce(group, std::span(values), options);
          },
          std::move(words)};
}

const Buffer kTen(nullptr, 10, DType::f32);

/// Refused before it starts; the call's buffers only say how long they are to be.
Wrong started(const char* what, const Call& call, std::vector<std::string> words) {
  return {what,
          [call](Group& group) {
            auto values = ones(call.data.count), out = ones(call.out.count);
            Call mine = call;
            mine.data = std::span(values);
            mine.out = std::span(out);
            static_cast<void>(start(group, std::move(mine)));
          },
          std::move(words)};
}

void scatter_of(Group& group, Buffer data, const CollectiveOptions& options) { scatter(group, data, options); }

INSTANTIATE_TEST_SUITE_P(
    Calls, Misused,
    testing::Values(
        allreduce_with("unknown_algorithm", {.algorithm = "magic"},
                       {"allreduce algorithm 'magic' is unknown", "allowed: auto", "ring", "torus_2d"}),
        allreduce_with("empty_algorithm", {.algorithm = ""}, {"allowed: auto"}),
        Wrong{"algorithm_of_another_collective",
              [](Group& group) {
                auto values = ones(9);
                broadcast(group, std::span(values), {.algorithm = "ring"});
              },
              {"broadcast algorithm 'ring' is unknown", "linear_pipeline"}},
        Wrong{"barrier_by_no_barrier",
              [](Group& group) { barrier(group, {.algorithm = "ring"}); },
              {"barrier algorithm 'ring' is unknown", "recursive_doubling"}},
        rooted("broadcast", broadcast, 3), rooted("broadcast", broadcast, -1), rooted("reduce", reduce, 3),
        rooted("gather", gather, 7), rooted("scatter", scatter_of, 3),
        allreduce_with("torus_too_large", {.algorithm = "torus_2d", .tuning = {.rows = 2, .columns = 2}},
                       {"2 x 2", "allowed"}),
        allreduce_with("torus_with_too_many_rows", {.algorithm = "torus_2d", .tuning = {.rows = 4}}, {"4", "allowed"}),
        allreduce_with("too_many_blocks", {.algorithm = "linear_pipeline", .tuning = {.blocks = 1U << 20}},
                       {"blocks is 1048576", "allowed: 0"}),
        allreduce_with("unknown_inner_algorithm", {.algorithm = "hierarchical", .tuning = {.inner = "zigzag"}},
                       {"zigzag", "allowed: auto"}),
        Wrong{"null_memory", [](Group& group) { allreduce(group, Buffer(nullptr, 3, DType::f32)); }, {"null"}},
        Wrong{"started_without_waiting",
              [](Group& group) {
                auto values = ones(9);
                static_cast<void>(start(group, Collective::reduce, std::span(values), {.root = 3}));
              },
              {"root is 3", "allowed: 0 to 2"}},
        Wrong{"parts_that_do_not_make_the_vector",
              [](Group& group) {
                auto values = ones(9);
                allgather_v(group, std::span(values), std::vector<std::size_t>{3, 3, 4});
              },
              {"10 elements", "one part for each of 3 ranks"}},
        Wrong{"parts_whose_sum_wraps_around",
              [](Group& group) {
                auto values = ones(4);
                allgather_v(group, std::span(values), std::vector<std::size_t>{SIZE_MAX - 7, 12, 0});
              },
              {"a vector of 4", "one part for each of 3 ranks"}},
        started("parts_of_an_allreduce", {Collective::allreduce, kTen, {}, {1000, 1000, 1000}, {}},
                {"allreduce", "3 lengths", "allgather_v and alltoall_v"}),
        started("parts_of_what_an_allgather_v_has_not", {Collective::allgather_v, kTen, {}, {8, 1, 1}, {8, 1, 1}},
                {"allgather_v", "`out`", "for alltoall_v"}),
        started("second_vector_of_a_broadcast", {Collective::broadcast, kTen, kTen, {}, {}},
                {"broadcast", "second vector of 10"}),
        Wrong{"alltoall_v_that_gives_itself_something_else",
              [](Group& group) {
                auto values = ones(9), out = values;
                std::vector<std::size_t> gives(3, 3), gets(3, 4);
                gets[static_cast<std::size_t>(group.rank())] = 1;
                alltoall_v(group, {std::span(values), gives}, {std::span(out), gets});
              },
              {"gives itself 3 elements and expects 1"}},
        Wrong{"alltoall_v_with_parts_that_do_not_make_out",
              [](Group& group) {
                auto values = ones(9), out = ones(8);
                const std::vector<std::size_t> lengths(3, 3);
                alltoall_v(group, {std::span(values), lengths}, {std::span(out), lengths});
              },
              {"alltoall_v, out", "9 elements", "a vector of 8"}},
        Wrong{"alltoall_without_equal_parts",
              [](Group& group) {
                auto values = ones(8), out = ones(8);
                alltoall(group, std::span(values), std::span(out));
              },
              {"8 elements", "multiples of the ranks"}}),
    title);

class Mismatched : public testing::TestWithParam<Wrong> {};

TEST_P(Mismatched, IsAMismatchOnEveryRankThatNamesTheOtherAndLasts) {
  const auto body = [](Group& group) {
    try {
      GetParam().call(group);
      barrier(group);
    } catch (const Mismatch& first) {
      EXPECT_THROW(barrier(group), Mismatch) << "the group says so on every call";
      throw;
    }
  };
  auto groups = Group::threads(3, {.timeout = 20s});
  std::vector<std::pair<std::string, std::vector<std::exception_ptr>>> ends{
      {"threads", test::outcomes(3, [&](int rank) { body(*groups[static_cast<std::size_t>(rank)]); })}};
  for (const char* transport : {"tcp", "shm"})
    ends.emplace_back(transport, test::outcomes_over(transport, 3, body, {.timeout = 20s}));
  for (const auto& [transport, failures] : ends)
    for (const std::exception_ptr& failure : failures) try {
        ASSERT_TRUE(failure) << transport;
        std::rethrow_exception(failure);
      } catch (const Mismatch& mismatch) {
        expect_words(mismatch, {"rank 1"}, transport);
        expect_words(mismatch, GetParam().words, transport);
      } catch (const std::exception& error) {
        ADD_FAILURE() << transport << ", another error: " << error.what();
      }
}

/// Everyone expects 2 elements of everyone, and rank 1 has so many for rank 0.
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
    title);

}  // namespace
}  // namespace syncopate
