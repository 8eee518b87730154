// False alarms: under full load, with concurrent joins and strangers' connections, no healthy rank is reported silent.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "processes.hpp"
#include "random/perform.hpp"
#include "sanitized.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kRoundNs = 60'000'000'000;  // of the same jobs

/// Totals of all processes of this test.
struct Counts {
  std::atomic<std::uint64_t> steps, strangers;
  static Counts& shared() {
    static void* const memory =
        ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return *static_cast<Counts*>(memory);
  }
};

/// A process that repeats an action until this object or the test is destroyed.
class Companion final {
 public:
  explicit Companion(const std::function<void()>& repeated) : process_(::fork()) {
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) repeated();
  }
  ~Companion() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

 private:
  pid_t process_;
};

/// The ports on which a process listens.
std::vector<std::uint16_t> ports_of(pid_t process) {
  std::set<std::string> own;
  std::error_code gone;
  for (const auto& file : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process), gone))
    own.insert(std::filesystem::read_symlink(file, gone).string());
  std::vector<std::uint16_t> ports;
  std::ifstream table("/proc/net/tcp");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    std::array<std::string, 10> field;
    for (std::string& text : field) fields >> text;
    const bool listens = field[3] == "0A";
    if (listens && own.contains(fmt::format("socket:[{}]", field[9])))
      ports.push_back(static_cast<std::uint16_t>(std::stoul(field[1].substr(field[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

/// Connects to every rank, sends a few bytes, and closes.
void visit(const std::vector<pid_t>& ranks) {
  for (const pid_t rank : ranks)
    for (const std::uint16_t port : ports_of(rank)) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
        const std::string_view said = port % 2 == 0 ? "SYNCOPTE" : "GET / HTTP/1.0";
        ::send(socket, said.data(), said.size(), MSG_NOSIGNAL);
        ++Counts::shared().strangers;
      }
      ::close(socket);
    }
}

/// A job whose ranks make random calls until `end_ns`, on rank 0's clock.
test::Job busy_job(const char* transport, std::uint64_t seed, std::int64_t end_ns) {
  static bool is_over = false;  // of this process
  const auto body = [=](Group& group, int step) {
    test::perform(group, {test::mixed(seed + static_cast<std::uint64_t>(step)), 4, {kRanks, 1, 100'000, true, true}},
                  [](const std::string&, std::uint64_t) {});
    auto ends = static_cast<std::uint8_t>(test::now_ns() >= end_ns);
    broadcast(group, std::span(&ends, 1));
    is_over = ends != 0;
    if (group.rank() == 0) ++Counts::shared().steps;
  };
  return test::Job(
      kRanks, body,
      {.transport = transport, .leaves = [](int, int) { return is_over; }, .silence = std::chrono::seconds(2)});
}

void expect_order(const test::Job& job, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const test::Ending ending = job.ending_of(rank);
    EXPECT_STREQ(ending.kind, "none") << "rank " << rank << ": " << ending.message;
  }
}

/// Runs jobs that join, reduce once and leave; returns their number.
int join_and_leave_until(std::int64_t end_ns) {
  int jobs = 0;
  for (; test::now_ns() < end_ns; ++jobs) {
    const test::Job job(2,
                        [](Group& group, int) {
                          std::vector<float> values(1000, 1);
                          allreduce(group, std::span(values));
                        },
                        {.leaves = [](int, int step) { return step == 1; }});
    expect_order(job, 2);
  }
  return jobs;
}

TEST(Load, OfAllCoresAccusesNoHealthyRank) {
  const auto seconds = static_cast<std::int64_t>(test::number_from("SYNCOPATE_SECONDS", test::kSanitized ? 2 : 5));
  const std::int64_t end_ns = test::now_ns() + seconds * 1'000'000'000;
  const Counts& counts = Counts::shared();  // before the first fork
  std::vector<std::unique_ptr<Companion>> load;
  for (unsigned core = 0; core < std::thread::hardware_concurrency(); ++core)
    load.push_back(std::make_unique<Companion>([] {
      for (volatile int i = 0; i < 1'000'000; i = i + 1) {
      }
    }));
  int joined = 0;
  for (std::uint64_t round = 0; test::now_ns() < end_ns && !HasFailure(); ++round) {
    const std::int64_t until_ns = std::min(end_ns, test::now_ns() + kRoundNs);
    const test::Job tcp = busy_job("tcp", 2 * round, until_ns), shm = busy_job("shm", 2 * round + 1, until_ns);
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.insert(ranks.end(), {tcp.process(rank), shm.process(rank)});
    const Companion strangers([&] { visit(ranks); });
    joined += join_and_leave_until(until_ns);
    expect_order(tcp, kRanks);
    expect_order(shm, kRanks);
  }
  EXPECT_GT(counts.steps, 0U);
  std::printf("%lld s of full load: %llu times four calls, %d jobs joined and left, %llu strangers\n",
              static_cast<long long>(seconds), static_cast<unsigned long long>(counts.steps), joined,
              static_cast<unsigned long long>(counts.strangers));
}

}  // namespace
}  // namespace syncopate
