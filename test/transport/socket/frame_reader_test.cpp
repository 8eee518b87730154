// FrameReader: however a stream of frames is cut into reads, each frame is put together once, and in its place.
#include "transport/socket/frame_reader.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/random.hpp"

namespace syncopate::transport::socket {
namespace {

using Reader = FrameReader<3>;
constexpr std::size_t kTail = 16;

/// A header "#" and two digits of the body's length, then the body.
std::string frames_of(const std::vector<std::string>& bodies) {
  std::string bytes;
  for (const std::string& body : bodies) {
    bytes += {'#', static_cast<char>('0' + body.size() / 10), static_cast<char>('0' + body.size() % 10)};
    bytes += body;
  }
  return bytes;
}

std::size_t length_in(const Reader::Header& header) {
  EXPECT_EQ(static_cast<char>(header[0]), '#');
  return 10 * static_cast<std::size_t>(static_cast<char>(header[1]) - '0') +
         static_cast<std::size_t>(static_cast<char>(header[2]) - '0');
}

/// At most `most` of the bytes from `at` on come into the reader's pieces. Returns how many.
std::size_t read(Reader& reader, std::string_view from, std::size_t most, base::Bytes expected = {}) {
  std::size_t come = 0;
  for (const iovec& piece : reader.pieces(expected)) {
    const std::size_t bytes = std::min({piece.iov_len, most - come, from.size() - come});
    if (bytes > 0) std::memcpy(piece.iov_base, from.data() + come, bytes);
    come += bytes;
  }
  reader.filled(come);
  return come;
}

/// Bodies from 0 bytes to several tails.
std::vector<std::string> drawn_bodies(const base::CounterRandom& random) {
  std::vector<std::string> bodies;
  for (std::uint64_t i = 0; i < 30; ++i)
    bodies.emplace_back(random.below(i % 3 == 0 ? 60 : 5, i), static_cast<char>('a' + i % 26));
  return bodies;
}

/// `knows`: the reader's user knows each body's length before its header has come, as a posted receive does.
void check(std::uint64_t seed, bool knows) {
  const base::CounterRandom random{seed};
  const std::vector<std::string> sent = drawn_bodies(random);
  const std::string bytes = frames_of(sent);
  Reader reader(kTail);
  std::vector<std::string> received;
  std::string body;
  const auto begin = [&](std::size_t length) { body.assign(length, '.'); };
  const auto memory = [&] { return std::as_writable_bytes(std::span(body)); };
  if (knows) begin(sent[0].size());
  std::size_t at = 0;
  for (std::uint64_t reads = 0; received.size() < sent.size(); ++reads) {
    ASSERT_LT(at, bytes.size()) << "bytes were lost";
    at += read(reader, std::string_view(bytes).substr(at), 1 + random.below(40, 100 + reads),
               knows ? memory() : base::Bytes());
    for (auto part = reader.next(); part != Reader::Part::none; part = reader.next()) {
      if (part == Reader::Part::header) {
        if (!knows) begin(length_in(reader.header()));
        reader.place(memory());
        continue;
      }
      received.push_back(body);
      if (knows && received.size() < sent.size()) begin(sent[received.size()].size());
      if (received.size() == sent.size()) break;
    }
  }
  EXPECT_EQ(received, sent);
  EXPECT_EQ(at, bytes.size());
}

TEST(FrameReader, PutsFramesTogetherHoweverTheyAreCut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    check(seed, false);
    check(seed, true);
  }
}

TEST(FrameReader, ReadsABodyStraightIntoItsMemory) {
  Reader reader(kTail);
  std::string body(40, '.');
  const auto memory = std::as_writable_bytes(std::span(body));
  EXPECT_EQ(read(reader, frames_of({std::string(40, 'x')}), 23, memory), 23U);
  EXPECT_EQ(body, std::string(20, 'x') + std::string(20, '.')) << "without a copy, and before its header was checked";
  EXPECT_EQ(reader.next(), Reader::Part::header);
  reader.place(memory);
  EXPECT_EQ(reader.next(), Reader::Part::none);
  EXPECT_EQ(reader.missing(), 20U);
  const auto pieces = reader.pieces();
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].iov_base, body.data() + 20);
  EXPECT_EQ(pieces[0].iov_len, 20U);
  EXPECT_EQ(pieces[1].iov_len, kTail) << "the frames behind it are read ahead";
}

TEST(FrameReader, TellsHowMuchOfAHeaderIsMissing) {
  Reader reader(kTail);
  EXPECT_EQ(reader.missing(), 3U);
  EXPECT_EQ(read(reader, "#1", 2), 2U);
  EXPECT_EQ(reader.next(), Reader::Part::none);
  EXPECT_EQ(reader.missing(), 1U);
  EXPECT_FALSE(reader.is_in_body());
}

TEST(FrameReader, LeavesTheNextFrameInTheTailUntilItIsAskedFor) {
  Reader reader(kTail);
  EXPECT_EQ(read(reader, frames_of({"", "ab"}), 8), 8U);
  EXPECT_EQ(reader.next(), Reader::Part::header);
  reader.place({});
  EXPECT_EQ(reader.next(), Reader::Part::frame);
  EXPECT_EQ(reader.next(), Reader::Part::header);
  EXPECT_EQ(reader.next(), Reader::Part::header) << "until it is placed";
  std::string body(2, '.');
  reader.place(std::as_writable_bytes(std::span(body)));
  EXPECT_EQ(reader.next(), Reader::Part::frame);
  EXPECT_EQ(body, "ab");
  EXPECT_EQ(reader.next(), Reader::Part::none);
}

}  // namespace
}  // namespace syncopate::transport::socket
