// Snapshots as files: read as written, refused if damaged, chosen and kept.
#include "service/snapshot/snapshot_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "server/snapshot/snapshot_folder.hpp"
#include "syncopate/error.hpp"

namespace syncopate {
namespace {

using namespace test;

std::string bytes_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

using server::Payload;
using server::Snapshot;
using server::SnapshotFolder;

Snapshot small(std::size_t index, std::int64_t step, std::size_t servers = 2) {
  Snapshot snapshot{.server = index, .step = step};
  snapshot.setup.servers = servers;
  snapshot.setup.tables = {{"table", 3, false}};
  snapshot.images = {server::payload_of("first image"), server::payload_of(""), server::payload_of("third")};
  return snapshot;
}

Log quiet() {
  Log log;
  log.level = LogLevel::error;
  return log;
}

TEST(Snapshot, IsReadAsItWasWrittenAndRefusedWhereverItIsCutOrChanged) {
  const SnapshotFiles folder;
  SnapshotFolder(folder.name(), 1, quiet()).write(small(1, 20));
  const std::string whole = bytes_of(folder.file(1, 20));
  const Snapshot read = server::read_snapshot(folder.file(1, 20));
  EXPECT_EQ(read.server, 1U);
  EXPECT_EQ(read.step, 20);
  EXPECT_EQ(difference(read.setup, small(1, 20).setup), "");
  ASSERT_EQ(read.images.size(), 3U);
  EXPECT_EQ(read.images[2].bytes.size(), 5U);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(
        static_cast<void>(server::snapshot_of({whole.begin(), whole.begin() + static_cast<long>(length)}, "f")),
        Corrupt);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<std::uint8_t> bytes(whole.begin(), whole.end());
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_THROW(static_cast<void>(server::snapshot_of(std::move(bytes), "f")), Corrupt);
  }
}

using Files = std::set<std::string>;

TEST(Snapshots, KeepTheNewestTwoStepsOfAllServersAndLeaveNothingElse) {
  const SnapshotFiles folder;
  fs::create_directories(folder.name());
  put(folder.file(0, 40) + ".01234567.writing", "of a process that was killed");
  const SnapshotFolder first(folder.name(), 0, quiet()), second(folder.name(), 1, quiet());
  for (const std::int64_t step : {10, 20, 30, 40}) {
    first.write(small(0, step));
    second.write(small(1, step));
  }
  EXPECT_EQ(folder.files(), (Files{"server0.step20.snapshot", "server0.step30.snapshot", "server0.step40.snapshot",
                                   "server1.step30.snapshot", "server1.step40.snapshot"}));
}

TEST(Snapshots, KeepAStepOfAllServersUntilAllHaveANewerOneAndABoundedNumberOfOthers) {
  const SnapshotFiles folder;
  const SnapshotFolder first(folder.name(), 0, quiet()), second(folder.name(), 1, quiet());
  for (const std::int64_t step : {1, 2}) {
    first.write(small(0, step));
    second.write(small(1, step));
  }
  for (std::int64_t step = 3; step <= 27; ++step) first.write(small(0, step));
  EXPECT_EQ(first.newest_in_common()->step, 2);
  Files expected{"server1.step1.snapshot", "server1.step2.snapshot"};
  for (const int step : {1, 2, 8, 16, 20, 24}) expected.insert("server0.step" + std::to_string(step) + ".snapshot");
  EXPECT_EQ(folder.files(), expected) << "the roundest four, and the newer one of equally round ones";
  second.write(small(1, 16));
  first.write(small(0, 28));
  EXPECT_EQ(first.newest_in_common()->step, 16);
  EXPECT_EQ(folder.files(), (Files{"server0.step2.snapshot", "server0.step16.snapshot", "server0.step20.snapshot",
                                   "server0.step24.snapshot", "server0.step28.snapshot", "server1.step2.snapshot",
                                   "server1.step16.snapshot"}));
}

TEST(Snapshots, OfAnAbandonedRunAreSetAsideWhenTheJobBeginsAndRemovedByTheNextWrite) {
  const SnapshotFiles folder;
  const SnapshotFolder first(folder.name(), 0, quiet()), second(folder.name(), 1, quiet());
  for (const std::int64_t step : {10, 20, 30}) first.write(small(0, step));
  second.write(small(1, 10));
  EXPECT_EQ(second.newest_in_common()->step, 10);
  for (const SnapshotFolder* each : {&first, &second}) each->begin(10);
  second.write(small(1, 20));
  EXPECT_EQ(first.newest_in_common()->step, 10) << "step 20 would be of two runs";
  EXPECT_TRUE(folder.files().contains("server0.step30.snapshot.abandoned"));
  first.write(small(0, 20));
  EXPECT_EQ(folder.files(), (Files{"server0.step10.snapshot", "server0.step20.snapshot", "server1.step10.snapshot",
                                   "server1.step20.snapshot"}));
}

TEST(Snapshots, TheNewestStepOfAllServersIsChosen) {
  const SnapshotFiles folder;
  SnapshotFolder first(folder.name(), 0, quiet()), second(folder.name(), 1, quiet());
  EXPECT_FALSE(first.newest_in_common());
  for (const std::int64_t step : {20, 30}) first.write(small(0, step));
  EXPECT_FALSE(first.newest_in_common());
  for (const std::int64_t step : {10, 20}) second.write(small(1, step));
  EXPECT_EQ(first.newest_in_common()->step, 20);
  EXPECT_EQ(second.newest_in_common()->step, 20);
  second.write(small(1, 30));
  EXPECT_EQ(first.newest_in_common()->step, 30);
  std::string bytes = bytes_of(folder.file(1, 30));
  bytes[bytes.size() / 2] ^= 1;
  put(folder.file(1, 30), bytes);
  EXPECT_EQ(first.newest_in_common()->step, 20);
  EXPECT_EQ(second.newest_in_common()->step, 20);
  Snapshot other = small(1, 20);
  other.setup.optimizer = "adamw";
  second.write(other);
  EXPECT_FALSE(first.newest_in_common()) << "of two jobs";
}

/// Entries that may exist where a snapshot is expected.
using Odd = std::pair<const char*, void (*)(const std::string& file)>;
class OddEntry : public testing::TestWithParam<Odd> {};

TEST_P(OddEntry, IsNamedAndAnOlderSnapshotIsUsed) {
  const SnapshotFiles folder;
  Log log;
  std::string said;
  log.level = LogLevel::warning;
  log.sink = [&](LogLevel, std::string_view line) { said += line; };
  SnapshotFolder own(folder.name(), 0, log);
  own.write(small(0, 10, 1));
  GetParam().second(folder.file(0, 20));
  const auto chosen = own.newest_in_common();
  ASSERT_TRUE(chosen.has_value());
  EXPECT_EQ(chosen->step, 10);
  EXPECT_NE(said.find(folder.file(0, 20)), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Snapshots, OddEntry,
    testing::Values(Odd{"folder", [](const std::string& file) { fs::create_directory(file); }},
                    Odd{"fifo", [](const std::string& file) { ::mkfifo(file.c_str(), 0644); }},
                    Odd{"loop", [](const std::string& file) { fs::create_symlink(file, file); }},
                    Odd{"device", [](const std::string& file) { fs::create_symlink("/dev/zero", file); }},
                    Odd{"dangling", [](const std::string& file) { fs::create_symlink("nowhere", file); }}),
    [](const auto& odd) { return odd.param.first; });

/// A process that writes a draft holds a lock on it, which ends with the process.
TEST(Drafts, OfKilledProcessesAreRemovedByTheNextWriteAndThoseOfOthersStay) {
  const SnapshotFiles folder;
  fs::create_directories(folder.name());
  const std::string file = folder.file(0, 10);
  put(file + ".01234567.writing", "of a process that was killed");
  put(file + ".89abcdef.writing", "of a process that writes");
  put(file + ".draft.writing", "of another program");
  put(folder.file(1, 10) + ".01234567.writing", "of another file");
  const int writer = ::open((file + ".89abcdef.writing").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);
  server::write_snapshot(file, small(0, 10));
  EXPECT_EQ(folder.files(), (std::set<std::string>{
                                "server0.step10.snapshot", "server0.step10.snapshot.89abcdef.writing",
                                "server0.step10.snapshot.draft.writing", "server1.step10.snapshot.01234567.writing"}));
  ::close(writer);
  server::write_snapshot(file, small(0, 10));
  EXPECT_FALSE(folder.files().contains("server0.step10.snapshot.89abcdef.writing"));
}

}  // namespace
}  // namespace syncopate
