// Snapshots as files: read as they were written, refused where they are damaged, chosen and kept.
#include "service/snapshot_files.hpp"

#include <gtest/gtest.h>

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

TEST(Snapshots, KeepTheNewestTwoOfTheRunAndLeaveNothingElse) {
  const SnapshotFiles folder;
  fs::create_directories(folder.name());
  put(folder.file(0, 40) + ".01234567.writing", "of a process that was killed");
  SnapshotFolder own(folder.name(), 0, quiet());
  for (const std::int64_t step : {900, 10, 20, 30}) own.write(small(0, step));
  EXPECT_EQ(folder.files(), (std::set<std::string>{"server0.step20.snapshot", "server0.step30.snapshot"}));
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

}  // namespace
}  // namespace syncopate
