// A cache whose rank is killed: every other rank names it, and none waits for records that do not come.
#include "syncopate/cache.hpp"

#include <gtest/gtest.h>

#include "processes.hpp"

namespace syncopate {
namespace {

/// Records of one byte value each.
class Constant final : public input::Source {
 public:
  [[nodiscard]] std::size_t records() const noexcept override { return 240; }
  [[nodiscard]] std::size_t bytes(std::size_t) const override { return 20'000; }
  [[nodiscard]] std::int64_t label(std::size_t) const override { return 0; }
  [[nodiscard]] std::string name(std::size_t record) const override { return "record " + std::to_string(record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return 1; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    std::memset(into.data(), static_cast<int>(record), into.size());
  }
};

const Constant source;
std::unique_ptr<cache::Cache> held;

/// A failure destroys the cache before its process ends, as in a program: a rank that ends silently would be blamed.
void read_a_step(Group& group, int step) try {
  if (!held) held = cache::Cache::form(group, source, 1, {.memory_bytes = 10'000'000});
  const std::size_t steps = 10, batch = source.records() / steps, at = static_cast<std::size_t>(step);
  for (const auto& record : held->read({{.epoch = at / steps, .sample = at % steps * batch}, batch}))
    if (record.bytes.back() != static_cast<std::byte>(record.sample)) throw std::logic_error("a record is wrong");
} catch (...) {
  held.reset();
  throw;
}

TEST(Cache, WhoseRankIsKilledIsToldSoEverywhere) {
  for (const char* transport : {"tcp", "shm"}) {
    const test::Job job(4, read_a_step, {.transport = transport});
    ASSERT_TRUE(job.await_steps(0, 25));
    const std::int64_t since_ns = test::now_ns();
    job.signal(2, SIGKILL);
    for (const int rank : {0, 1, 3}) {
      const test::Ending ending = job.ending_of(rank);
      EXPECT_STREQ(ending.kind, "PeerLost") << transport << ", rank " << rank << ": " << ending.message;
      EXPECT_EQ(ending.peer, 2) << ending.message;
      EXPECT_TRUE(std::string(ending.operation).starts_with("alltoall_v u8")) << ending.operation;
      EXPECT_LE(static_cast<double>(ending.at_ns - since_ns) * 1e-9, 2.0) << "the promise for a death";
    }
  }
}

}  // namespace
}  // namespace syncopate
