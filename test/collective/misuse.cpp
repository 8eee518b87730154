// Misuse on threads, over TCP and in shared memory: what is allowed, on every rank, and no harm done.
#include "collective/wrong.hpp"

namespace syncopate {
namespace {

using test::expect_thrown;
using test::ones;
using test::Wrong;

class Misused : public testing::TestWithParam<Wrong> {};

TEST_P(Misused, IsMisuseOnEveryRankThatNamesWhatIsAllowedAndHarmsNothing) {
  test::on_every_transport(3, [](Group& group) {
    SCOPED_TRACE(group.transport());
    expect_thrown<Misuse>([&] { GetParam().call(group); }, GetParam().words);
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

/// A call that is refused before it starts; its buffers only give lengths.
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
              {"sends itself 3 elements and expects 1"}},
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
    test::wrong_title);

TEST(Misused, AlgorithmsAreRefusedWhereNothingIsExchangedToo) {
  for (const int ranks : {1, 2})
    test::on_groups(ranks, [&](Group& group) {
      std::vector<float> own(10);
      for (const Scope scope : {Scope::group, Scope::host, Scope::across})
        EXPECT_THROW(allreduce(group, std::span(own), {.algorithm = "nonsense", .scope = scope}), Misuse);
      allreduce(group, std::span(own));
    });
}

class RefusedAlone : public testing::TestWithParam<Wrong> {};

TEST_P(RefusedAlone, IsADifferentOperationToTheOthers) {
  const auto body = [](Group& group) {
    auto values = ones(9);
    SCOPED_TRACE(group.transport());
    const auto calls = [&] {
      if (group.rank() == 1) {
        EXPECT_THROW(GetParam().call(group), Misuse);
      } else {
        allreduce(group, std::span(values));
      }
      barrier(group);  // rank 1 learns here what its refusal has led to
    };
    expect_thrown<Mismatch>(calls, GetParam().words);
  };
  test::on_every_transport(3, body, {.timeout = std::chrono::seconds(60)});
}

INSTANTIATE_TEST_SUITE_P(Calls, RefusedAlone,
                         testing::Values(rooted("broadcast", broadcast, 3),
                                         allreduce_with("unknown_algorithm", {.algorithm = "magic"},
                                                        {"rank 1 called a call that was refused", "magic"}),
                                         started("started", {Collective::broadcast, kTen, kTen, {}, {}},
                                                 {"that was refused", "second vector of 10"})),
                         test::wrong_title);

TEST(RefusedAlone, IsToldByARankThatLeavesInOrderToo) {
  const auto body = [](Group& group) {
    auto values = ones(9);
    if (group.rank() == 1)
      EXPECT_THROW(broadcast(group, std::span(values), {.root = 3}), Misuse);
    else
      EXPECT_THROW(allreduce(group, std::span(values)), Mismatch) << group.transport();
  };
  for (const char* transport : {"tcp", "shm"})
    for (const auto& failure : test::outcomes_over(transport, 2, body, {.timeout = std::chrono::seconds(60)}))
      if (failure) std::rethrow_exception(failure);
}

TEST(RefusedByAll, IsTheReasonOfALaterEndOnlyIfNoOperationFollowed) {
  for (const bool goes_on : {true, false}) {
    const auto body = [&](Group& group) {
      auto values = ones(9);
      EXPECT_THROW(broadcast(group, std::span(values), {.root = 3}), Misuse);
      SCOPED_TRACE(group.transport());
      const std::string text = test::thrown<RemoteFailure>([&] {
        if (goes_on) barrier(group);  // rank 1 may end before this rank has left it
        if (group.rank() == 1) throw std::runtime_error("its data is damaged");
        recv(group, 1, std::span(values));
      });
      test::expect_words(text, {"rank 1 gave up: its program threw an exception"});
      EXPECT_EQ(text.find("root is 3") == std::string::npos, goes_on) << text;
    };
    for (const char* transport : {"tcp", "shm"}) {
      const auto failures = test::outcomes_over(transport, 2, body, {.timeout = std::chrono::seconds(60)});
      EXPECT_FALSE(failures[0]);
      EXPECT_THROW(std::rethrow_exception(failures[1]), std::runtime_error);
    }
  }
}

TEST(RefusedAlone, MessageAbortsTheGroupThatWaitsForIt) {
  test::on_every_transport(2, [](Group& group) {
    auto values = ones(3);
    SCOPED_TRACE(group.transport());
    if (group.rank() == 1) {
      EXPECT_THROW(send(group, 0, Buffer(nullptr, 3, DType::f32)), Misuse);
    }
    expect_thrown<RemoteFailure>([&] { recv(group, 1 - group.rank(), std::span(values)); }, {"rank 1 gave up", "null"});
  });
}

TEST(RefusedAlone, CallOfABindingIsToldToTheOthers) {
  test::on_every_transport(2, [](Group& group) {
    auto values = ones(3);
    SCOPED_TRACE(group.transport());
    if (group.rank() == 1) {
      EXPECT_THROW(refuse(group, "no array at all"), Misuse);
    }
    const auto calls = [&] {
      allreduce(group, std::span(values));
      allreduce(group, std::span(values));
    };
    expect_thrown<Mismatch>(calls, {"that was refused", "no array at all"});
  });
}

TEST(Aborted, GroupOfOneRankThrowsThatFromEveryCall) {
  for (const bool joins : {true, false}) {
    const auto group = joins ? Group::join({.rank = 0, .size = 1}) : std::move(Group::threads(1).front());
    auto values = ones(3);
    allreduce(*group, std::span(values));
    group->abort("enough");
    EXPECT_THROW(allreduce(*group, std::span(values)), RemoteFailure);
    EXPECT_THROW(start(*group, Collective::allreduce, std::span(values)).wait(), RemoteFailure);
  }
}

}  // namespace
}  // namespace syncopate
