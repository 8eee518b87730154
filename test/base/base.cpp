// Units, environment, log levels and traces.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/env.hpp"
#include "base/wire.hpp"
#include "syncopate/error.hpp"
#include "syncopate/log.hpp"
#include "syncopate/tooling/blame.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/units.hpp"
#include "syncopate/trace.hpp"
#include "thrown.hpp"

namespace syncopate {
namespace {

TEST(Units, ReadSizesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("4"), 4U);
  EXPECT_EQ(parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(parse_bytes("1.5MiB"), 1572864U);
  EXPECT_EQ(parse_bytes("25MB"), 25000000U);
  EXPECT_EQ(parse_bytes("4TiB"), std::uint64_t{4} << 40);
  for (const char* wrong : {"", "x", "-1", "4 apples", "1.3", "1e30", "nan", "KiB"})
    EXPECT_THROW(static_cast<void>(parse_bytes(wrong)), Misuse) << wrong;
}

TEST(Units, ReadCounts) {
  EXPECT_EQ(parse_count("1000"), 1000U);
  EXPECT_EQ(parse_count("25M"), 25000000U);
  EXPECT_EQ(parse_count("16Mi"), std::uint64_t{16} << 20);
  EXPECT_EQ(parse_count("1.5Ki"), 1536U);
  for (const char* wrong : {"", "x", "-1", "16MiB", "1.3", "1e30", "nan", "Mi"})
    EXPECT_THROW(static_cast<void>(parse_count(wrong)), Misuse) << wrong;
}

TEST(Names, ThatAreUnknownAreRefusedWithTheNearest) {
  constexpr std::string_view known[] = {"ring", "halving_doubling", "mst"};
  EXPECT_EQ(unknown_name("algorithm", "rnig", known),
            "algorithm 'rnig' is unknown; allowed: ring, halving_doubling, mst; did you mean 'ring'?");
  EXPECT_EQ(nearest_name("halving", known), "halving_doubling");
  EXPECT_EQ(nearest_name("rign", known), "ring") << "exchanged letters are one mistake";
  for (const char* far : {"", "r", "tree", "mstms"}) EXPECT_EQ(nearest_name(far, known), "") << far;
}

TEST(Units, ReadRates) {
  EXPECT_DOUBLE_EQ(parse_rate("1gbit"), 1e9);
  EXPECT_DOUBLE_EQ(parse_rate("2.5Gbit"), 2.5e9);
  EXPECT_DOUBLE_EQ(parse_rate("200mbit"), 2e8);
  EXPECT_DOUBLE_EQ(parse_rate("none"), 0);
  EXPECT_THROW(static_cast<void>(parse_rate("1000")), Misuse) << "a rate has a unit";
  for (const char* wrong : {"", "fast", "0", "1gb", "-1gbit"})
    EXPECT_THROW(static_cast<void>(parse_rate(wrong)), Misuse) << wrong;
}

TEST(Units, WriteWhatPeopleRead) {
  EXPECT_EQ(format_bytes(100), "100 B");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(36.9e6), "35.2 MiB");
  EXPECT_EQ(format_seconds(12.34e-6), "12.3 us");
  EXPECT_EQ(format_seconds(0.00456), "4.56 ms");
  EXPECT_EQ(format_seconds(1.2), "1.20 s");
  EXPECT_EQ(format_rate(3414.2), "3414");
  EXPECT_EQ(format_rate(41.23), "41.2");
  EXPECT_EQ(format_rate(0.1923), "0.19");
  EXPECT_EQ(format_rate(0.0012), "0.0012");
}

TEST(Wire, CutsTextsBetweenCharacters) {
  EXPECT_EQ(base::cut("weights", 7), "weights");
  EXPECT_EQ(base::cut("weights", 4), "weig");
  EXPECT_EQ(base::cut("a\xc3\xa9", 2), "a") << "not in the middle of a letter";
  EXPECT_EQ(base::cut("\xe2\x82\xac", 2), "");
}

class BlamePipe : public testing::Test {
 protected:
  BlamePipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~BlamePipe() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  /// Reads the text that is in the pipe.
  std::string written() {
    char text[256] = "end";
    EXPECT_EQ(::write(ends_[1], text, 3), 3);
    const ssize_t bytes = ::read(ends_[0], text, sizeof text);
    return {text, static_cast<std::size_t>(bytes) - 3};
  }
  int ends_[2]{-1, -1};
};

TEST_F(BlamePipe, CarriesOneLineThatNamesTheRank) {
  const BlameDescriptor here = BlameDescriptor::of(ends_[1]);
  BlameDescriptor::parse(here.text()).report(12);
  const std::string line = written();
  ASSERT_TRUE(line.ends_with('\n')) << line;
  EXPECT_EQ(blamed_in(line.substr(0, line.size() - 1)), 12) << line;
}

TEST_F(BlamePipe, GetsNothingUnderTheNumberOfAnotherFile) {
  BlameDescriptor other = BlameDescriptor::of(ends_[1]);
  ++other.inode;
  other.report(12);
  BlameDescriptor{}.report(12);
  EXPECT_EQ(written(), "");
}

TEST(Blame, IsParsedAndOtherLinesNameNobody) {
  for (const char* text : {"", "3", "3:", ":4", "-1:4", "3:4:5", "x:4", "3:x"})
    EXPECT_THROW(std::ignore = BlameDescriptor::parse(text), Misuse) << text;
  EXPECT_EQ(BlameDescriptor::parse("3:4").number, 3);
  for (const char* line : {"", "syncopate: first failed rank ", "syncopate: first failed rank -1",
                           "syncopate: first failed rank 1x", "the first to fail was rank 1"})
    EXPECT_EQ(blamed_in(line), std::nullopt) << line;
}

TEST(Log, DoesNotWaitForWhoeverReadsStandardError) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  for (int line = 0; line < 3000; ++line) Log().write(LogLevel::warning, std::string(100, 'x'));  // a pipe holds 64 KiB
  ::dup2(before, STDERR_FILENO);
  for (const int file : {ends[0], ends[1], before}) ::close(file);
}

TEST(Environment, NamesTheVariableThatIsWrong) {
  const base::Environment environment({{"RANK", "3"}, {"SIZE", "many"}, {"EMPTY", ""}});
  EXPECT_EQ(environment.integer("RANK", 0, 10), 3);
  EXPECT_EQ(environment.integer("ABSENT", 0, 10), std::nullopt);
  EXPECT_EQ(environment.text("EMPTY"), std::nullopt);
  EXPECT_THROW(static_cast<void>(environment.integer("SIZE", 0, 10)), Misuse);
  EXPECT_THROW(static_cast<void>(environment.integer("RANK", 5, 10)), Misuse);
  for (const char* wrong : {"3 ranks", "3.5", " 3", "0x3"}) {
    const base::Environment here({{"RANK", wrong}, {"SIZE", "4"}});
    EXPECT_THROW(static_cast<void>(here.integer("RANK", 0, 10)), Misuse) << wrong;
  }
}

TEST(Log, WritesOnlyWhatItsLevelShows) {
  std::vector<std::string> lines;
  Log log{LogLevel::info, [&](LogLevel, std::string_view line) { lines.emplace_back(line); }};
  log.write(LogLevel::info, "a");
  log.write(LogLevel::debug, "b");
  log.level = log_level_named("off");
  log.write(LogLevel::error, "c");
  EXPECT_EQ(lines, std::vector<std::string>{"a"});
  EXPECT_THROW(static_cast<void>(log_level_named("loud")), Misuse);
}

TEST(Trace, KeepsNothingWhileItIsStopped) {
  Trace trace;
  trace.add({"wait", "w", 0, 1, 0});
  EXPECT_TRUE(trace.spans().empty());
  trace.restart();
  trace.add({"wait", "w\"\\\n", 0, 0.001, 5});
  trace.stop();
  trace.add({"wait", "x", 0, 1, 0});
  ASSERT_EQ(trace.spans().size(), 1U);
  const std::string chrome = chrome_trace({trace.spans()});
  test::expect_words(chrome, {R"("w\"\\\u000a")", R"("dur":1000.000)"});
}

}  // namespace
}  // namespace syncopate
