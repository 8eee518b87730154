// Messages with tags: matched by tag whatever the order, kept until their receive, of equal lengths, and bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>

#include "collective/group/message_queues.hpp"
#include "ranks.hpp"
#include "sanitized.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;

const GroupOptions kSoon{.timeout = 20s};
// An envelope holds the elements of the first, one frame those of the second. The third is larger than any socket
// buffer and any ring buffer.
constexpr std::size_t kCounts[] = {0, 1, 10, 11, 1000, 3'000'000};

std::vector<float> numbered(std::size_t count, int tag) {
  std::vector<float> made(count);
  std::iota(made.begin(), made.end(), static_cast<float>(100 * tag));
  return made;
}

TEST(Tags, MatchWhateverTheOrder) {
  test::on_every_transport(
      2,
      [](Group& group) {
        for (const std::size_t count : kCounts) {
          if (group.rank() == 0)
            for (const int tag : {1, 2, 3}) {
              auto data = numbered(count, tag);
              send(group, 1, std::span(data), {.tag = tag});
            }
          else
            for (const int tag : {3, 1, 2}) {
              std::vector<float> data(count);
              recv(group, 0, std::span(data), {.tag = tag});
              EXPECT_EQ(data, numbered(count, tag));
            }
          barrier(group);
        }
      },
      kSoon);
}

TEST(Tags, ThatAreEqualKeepTheOrderOfTheCalls) {
  test::on_every_transport(
      2,
      [](Group& group) {
        std::vector<std::int32_t> sent(6);
        std::iota(sent.begin(), sent.end(), 0);
        const std::span all(sent);
        const int tags[] = {7, 8, 7, 8, 7, 8};
        if (group.rank() == 0)
          for (std::size_t i = 0; i < 6; ++i) send(group, 1, all.subspan(i, 1), {.tag = tags[i]});
        std::vector<std::int32_t> eights(3), sevens(3);
        if (group.rank() == 1)
          for (std::size_t i = 0; i < 3; ++i) recv(group, 0, std::span(eights).subspan(i, 1), {.tag = 8});
        if (group.rank() == 1)
          for (std::size_t i = 0; i < 3; ++i) recv(group, 0, std::span(sevens).subspan(i, 1), {.tag = 7});
        if (group.rank() == 1) {
          EXPECT_EQ(eights, (std::vector<std::int32_t>{1, 3, 5}));
          EXPECT_EQ(sevens, (std::vector<std::int32_t>{0, 2, 4}));
        }
      },
      kSoon);
}

/// Started in an order of its own on every rank, in all directions at the same time, between ordinary messages.
void cross_tags(Group& group) {
  constexpr int kTags = 20, kRounds = 3;
  const auto length = [](int from, int tag) {
    return static_cast<std::size_t>(tag % 5 == 4 ? 60'000 : from + 7 * tag);
  };
  std::mt19937 random(static_cast<unsigned>(group.rank()));
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::vector<float>> data;
    std::vector<std::tuple<int, int, bool>> calls;
    for (int peer = 0; peer < group.size(); ++peer)
      for (int tag = 0; tag < kTags && peer != group.rank(); ++tag) {
        calls.emplace_back(peer, tag, true);
        calls.emplace_back(peer, tag, false);
      }
    std::shuffle(calls.begin(), calls.end(), random);
    std::vector<Work> works;
    for (const auto& [peer, tag, sends] : calls) {
      data.push_back(sends ? numbered(length(group.rank(), tag), tag) : std::vector<float>(length(peer, tag)));
      works.push_back(sends ? start_send(group, peer, std::span(data.back()), {.tag = tag})
                            : start_recv(group, peer, std::span(data.back()), {.tag = tag}));
    }
    for (const Work& work : works) work.wait();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& [peer, tag, sends] = calls[i];
      if (!sends) {
        ASSERT_EQ(data[i], numbered(length(peer, tag), tag)) << "tag " << tag << " from rank " << peer;
      }
    }
    std::vector<std::int32_t> plain(100, group.rank());
    const int other = group.rank() ^ 1;
    std::vector<std::int32_t> theirs(100);
    exchange(group, {other, std::span(plain)}, {other, std::span(theirs)});
    EXPECT_EQ(theirs.back(), other);
  }
}

TEST(Tags, CrossInAnyOrder) {
  test::on_every_transport(4, cross_tags, kSoon);
  test::on_every_transport(2, cross_tags, {.timeout = 20s, .delay = 100us});
  test::on_every_transport(2, cross_tags, {.timeout = 20s, .streams = 3});
}

// The receive of tag 1 may be called while its elements arrive. Both ranks send at the same time.
TEST(Tags, AreFoundByAReceiveThatIsCalledDuringTheirArrival) {
  test::on_every_transport(
      2,
      [](Group& group) {
        const int other = 1 - group.rank();
        auto large = numbered(3'000'000, 1), small = numbered(3, 2);
        std::vector<float> first(large.size()), second(small.size());
        Work later = start_recv(group, other, std::span(second), {.tag = 2});
        Work sent = start_send(group, other, std::span(large), {.tag = 1});
        Work too = start_send(group, other, std::span(small), {.tag = 2});
        start_recv(group, other, std::span(first), {.tag = 1}).wait();
        later.wait();
        sent.wait();
        too.wait();
        EXPECT_EQ(first, large);
        EXPECT_EQ(second, small);
      },
      kSoon);
}

TEST(Tags, OfAKeptMessageAreTakenBeforeThoseOfStartedReceives) {
  test::on_every_transport(
      2,
      [](Group& group) {
        for (int tag = 1; tag <= 3 && group.rank() == 0; ++tag) send(group, 1, std::span(&tag, 1), {.tag = tag});
        if (group.rank() == 0) return;
        int one = 0, two = 0, three = 0;
        recv(group, 0, std::span(&two, 1), {.tag = 2});
        recv(group, 0, std::span(&one, 1), {.tag = 1});
        start_recv(group, 0, std::span(&three, 1), {.tag = 3}).wait();
        EXPECT_EQ(std::tuple(one, two, three), std::tuple(1, 2, 3));
      },
      kSoon);
}

/// A search among all kept messages, or among all receives, would take minutes.
TEST(Tags, OfManyMessagesMatchInTheOppositeOrder) {
  constexpr int kMany = test::kSanitized ? 10'000 : 100'000;
  const auto send_all = [](Group& group) {
    for (int tag = 0; tag < kMany; ++tag) send(group, 1, std::span(&tag, 1), {.tag = tag});
  };
  const auto receive_kept = [](Group& group) {
    for (int tag = kMany - 1, data = 0; tag >= 0; --tag) {
      recv(group, 0, std::span(&data, 1), {.tag = tag});
      ASSERT_EQ(data, tag);
    }
  };
  test::on_groups(2,
                  [&](Group& group) {
                    group.rank() == 0 ? send_all(group) : receive_kept(group);
                    barrier(group);
                    int ready = kMany;
                    if (group.rank() == 0) {
                      recv(group, 1, std::span(&ready, 1), {.tag = kMany});
                      return send_all(group);
                    }
                    std::vector<int> data(kMany);
                    std::vector<Work> works;
                    for (int tag = kMany - 1; tag >= 0; --tag)
                      works.push_back(start_recv(group, 0, std::span(data).subspan(static_cast<std::size_t>(tag), 1),
                                                 {.tag = tag}));
                    works.push_back(start_send(group, 0, std::span(&ready, 1), {.tag = kMany}));
                    for (Work& work : works) work.wait();
                    for (int tag = 0; tag < kMany; ++tag) ASSERT_EQ(data[static_cast<std::size_t>(tag)], tag);
                  },
                  {.timeout = 120s});
}

TEST(Tags, StayKeptAcrossCollectives) {
  test::on_every_transport(
      2,
      [](Group& group) {
        auto one = numbered(1000, 1), two = numbered(1000, 2);
        if (group.rank() == 0) {
          send(group, 1, std::span(one), {.tag = 1});
          send(group, 1, std::span(two), {.tag = 2});
          return barrier(group);
        }
        std::vector<float> data(1000);
        recv(group, 0, std::span(data), {.tag = 2});
        EXPECT_EQ(data, two);
        barrier(group);
        recv(group, 0, std::span(data), {.tag = 1});
        EXPECT_EQ(data, one);
      },
      kSoon);
}

std::string length_of(const char* type, std::size_t count, std::size_t width) {
  return std::string(type) + " x " + std::to_string(count) + " (" + std::to_string(count * width) + " bytes)";
}

std::vector<std::string> outcomes_of(const char* transport, const std::function<void(Group&)>& body,
                                     GroupOptions options = kSoon) {
  std::vector<std::string> texts;
  for (const std::exception_ptr& failure : test::outcomes_over(transport, 2, body, std::move(options)))
    texts.push_back(test::kind_thrown(failure));
  return texts;
}

void expect_all(const std::vector<std::string>& texts, const std::vector<std::string>& parts) {
  for (const std::string& text : texts) test::expect_words(text, parts);
}

TEST(Tags, OfMessagesThatDifferInLengthOrTypeGiveAMismatchThatNamesBoth) {
  for (const char* transport : {"tcp", "shm"})
    for (const bool is_kept : {false, true})  // whether the message arrives before its receive
      for (const std::size_t count : {std::size_t{3}, std::size_t{300}}) {
        const auto disagree = [&](Group& group) {
          std::vector<float> floats(count);
          std::vector<double> doubles(count + 1);
          if (group.rank() == 0) {
            send(group, 1, std::span(floats), {.name = "a", .tag = 5});
            send(group, 1, std::span(floats), {.tag = 6});
          } else {
            if (is_kept) recv(group, 0, std::span(floats), {.tag = 6});
            recv(group, 0, std::span(doubles), {.name = "b", .tag = 5});
          }
          barrier(group);
        };
        const std::string sent = length_of("f32", count, 4), expected = length_of("f64", count + 1, 8);
        expect_all(outcomes_of(transport, disagree), {"Mismatch", "tag 5", sent.c_str(), expected.c_str()});
      }
}

TEST(Tags, AndMessagesWithoutAreAMismatch) {
  for (const char* transport : {"tcp", "shm"})
    for (const int tagged : {0, 1})
      expect_all(outcomes_of(transport,
                             [&](Group& group) {
                               std::vector<float> data(5);
                               const CollectiveOptions options = group.rank() == tagged
                                                                     ? CollectiveOptions{.tag = 9}
                                                                     : CollectiveOptions{.name = "plain"};
                               group.rank() == 0 ? send(group, 1, std::span(data), options)
                                                 : recv(group, 0, std::span(data), options);
                               barrier(group);
                             }),
                 {"Mismatch", "tag 9", "'plain'"});
}

TEST(Tags, ThatNobodySendsTimeOut) {
  expect_all(outcomes_of("shm",
                         [](Group& group) {
                           std::vector<float> data(5);
                           if (group.rank() == 1) return recv(group, 0, std::span(data), {.tag = 2});
                           group.set_timeout(20s);
                           send(group, 1, std::span(data), {.tag = 1});
                           recv(group, 1, std::span(data), {.tag = 3});
                         },
                         {.timeout = 500ms}),
             {"Timeout", "with tag 2", "1 of whose messages no receive has taken (tags 1)"});
}

TEST(Tags, AreReadFromEnvelopesThatMayBeDamaged) {
  using collective::group::Envelope;
  std::vector<float> data(3, 1);
  const Envelope::Wire wire = Envelope::encode(-5, std::span(data));
  EXPECT_EQ(Envelope::decode(wire).tag, -5);
  EXPECT_EQ(Envelope::decode(wire).bytes(), 12U);
  for (const std::size_t damaged : {std::size_t{15}, std::size_t{16}}) {  // the highest byte of the number, the type
    Envelope::Wire other = wire;
    other[damaged] = std::byte{0x77};
    EXPECT_THROW(static_cast<void>(Envelope::decode(other)), Corrupt);
  }
}

TEST(Tags, OfMessagesThatNobodyReceivesTakeBoundedMemory) {
  expect_all(outcomes_of("shm",
                         [](Group& group) {
                           constexpr std::size_t kElements = (std::size_t{1} << 28) + 1;  // beyond 1 GiB
                           const auto large = std::make_unique_for_overwrite<float[]>(kElements);
                           std::vector<float> data(500);
                           for (const int tag : {4, 3}) {  // 4 is kept until its receive
                             if (group.rank() == 0) send(group, 1, std::span(data), {.tag = tag});
                             if (group.rank() == 1) recv(group, 0, std::span(data), {.tag = 7 - tag});
                           }
                           if (group.rank() == 0)
                             send(group, 1, Buffer(large.get(), kElements, DType::f32), {.tag = 1});
                           recv(group, 1 - group.rank(), std::span(data), {.tag = 2});
                         }),
             {"Mismatch", "keeps 0 bytes", "tag 1", "1073741828 bytes", "post receives earlier"});
}

}  // namespace
}  // namespace syncopate
