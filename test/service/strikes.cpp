// Strikes: servers and workers are killed at random moments, and the others continue; every update counts once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "random/draw.hpp"
#include "sanitized.hpp"
#include "service/child.hpp"
#include "syncopate/error.hpp"
#include "syncopate/server.hpp"

namespace syncopate {
namespace {

using namespace std::chrono_literals;
using test::Child;

constexpr std::size_t kMostWorkers = 4;
constexpr std::array<std::size_t, 3> kTables{37, 300'000, 1};
constexpr std::size_t kElements = 300'038;
constexpr char kFolder[] = "SYNCOPATE_TEST_FOLDER", kRole[] = "SYNCOPATE_TEST_ROLE", kIndex[] = "SYNCOPATE_TEST_INDEX",
               kModel[] = "SYNCOPATE_TEST_MODEL", kServerCount[] = "SYNCOPATE_TEST_SERVERS",
               kWorkerCount[] = "SYNCOPATE_TEST_WORKERS";
constexpr std::int64_t kEndless = std::int64_t{1} << 60;
constexpr auto kPatience = test::kSanitized ? 15s : 8s, kBound = 60s;

/// State shared by the processes of a job: a file in their memory.
struct Progress {
  std::atomic<std::int64_t> goal{kEndless};         ///< steps after which workers end
  std::atomic<std::int64_t> began[kMostWorkers]{};  ///< steps whose update may have left the worker
  std::atomic<std::int64_t> known[kMostWorkers]{};  ///< steps of every worker in the worker's weights
};

class SharedProgress final {
 public:
  explicit SharedProgress(const std::string& folder, bool is_new = false) {
    const int file = ::open((folder + "/progress").c_str(), O_RDWR | O_CREAT, 0600);
    if (::ftruncate(file, sizeof(Progress)) != 0) throw SystemFailure("no file to share");
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    progress_ = is_new ? new (memory) Progress : static_cast<Progress*>(memory);
  }
  ~SharedProgress() { ::munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* operator->() const { return progress_; }
  Progress& operator*() const { return *progress_; }

 private:
  Progress* progress_;
};

std::string word(const char* name) { return std::getenv(name); }
std::size_t number(const char* name) { return std::stoul(word(name)); }
std::int64_t staleness_of(std::string_view model) { return model == "bsp" ? 0 : model == "ssp:3" ? 3 : kEndless; }

std::vector<std::string> addresses() {
  std::string folder = word(kFolder);
  std::ranges::replace(folder, '/', '-');
  std::vector<std::string> all;
  for (std::size_t server = 0; server < number(kServerCount); ++server)
    all.push_back("@syncopate" + folder + "-" + std::to_string(server));
  return all;
}

void play_server() {
  const std::size_t index = number(kIndex);
  const auto server = Server::start({.addresses = {addresses()[index]},
                                     .index = index,
                                     .patience = kPatience,
                                     .replicas = 1,
                                     .servers = addresses(),
                                     .log = {.level = LogLevel::off}});
  while (!server->wait_for_end(1s) && ::getppid() != 1) {
  }
  test::wait_for_the_end();  // its replica may be needed
}

/// Weight i belongs to worker i mod N, whose every step adds exactly 1 to it.
void play_worker() {
  const std::size_t own = number(kIndex), workers = number(kWorkerCount);
  const SharedProgress progress(word(kFolder));
  std::vector<float> weights[3];
  for (std::size_t table = 0; table < 3; ++table) weights[table].resize(kTables[table]);
  const auto worker = TableWorker::connect({.servers = addresses(),
                                            .worker = own,
                                            .workers = workers,
                                            .consistency = word(kModel),
                                            .optimizer = "sgd",
                                            .hyperparameters = {{"weight_decay", 0}},
                                            .timeout = kBound,
                                            .log = {.level = LogLevel::off}});
  for (auto& table : weights) worker->create_table("table " + std::to_string(table.size()), Buffer(std::span(table)));
  worker->start();
  while (worker->steps() < progress->goal) {
    for (std::size_t table = 0; table < 3; ++table) worker->sync(table);
    progress->known[own] = std::max<std::int64_t>(0, worker->steps() - staleness_of(word(kModel)));
    progress->began[own] = worker->steps() + 1;
    for (std::size_t table = 0; table < 3; ++table) {
      std::vector<float> gradient(weights[table].size());
      for (std::size_t i = own; i < gradient.size(); i += workers) gradient[i] = -static_cast<float>(workers);
      worker->update(table, Buffer(std::span(gradient)), 1);
    }
    worker->clock(1);
  }
  worker->finish();
  std::ofstream out(word(kFolder) + "/" + std::to_string(own), std::ios::binary);
  for (const auto& table : weights)
    out.write(reinterpret_cast<const char*>(table.data()), static_cast<std::streamsize>(table.size() * sizeof(float)));
}

/// Not a test: the body of a Child.
TEST(Strike, DISABLED_IsPlayed) {
  try {
    word(kRole) == "server" ? play_server() : play_worker();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s %zu: %s\n", word(kRole).c_str(), number(kIndex), error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

/// A job drawn from a seed, whose processes are killed at random moments.
class Struck final {
 public:
  explicit Struck(std::uint64_t seed)
      : draw_(seed),
        model_(draw_.pick(std::array{"bsp", "ssp:3", "tap"})),
        server_count_(2 + draw_.below(2)),
        worker_count_(2 + draw_.below(kMostWorkers - 1)) {
    char pattern[] = "/tmp/syncopate-strike-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    progress_ = std::make_unique<SharedProgress>(folder_, true);
    for (std::size_t i = 0; i < server_count_; ++i) servers_.push_back(played("server", i));
    for (std::size_t i = 0; i < worker_count_; ++i) workers_.push_back(played("worker", i));
  }
  ~Struck() {
    workers_.clear();
    servers_.clear();
    std::filesystem::remove_all(folder_);
  }
  Struck(const Struck&) = delete;
  Struck& operator=(const Struck&) = delete;

  /// Returns the number of kills.
  std::size_t run() {
    const std::size_t strikes = 3 + draw_.below(4);
    for (std::size_t i = 0; i < strikes && await_replicas(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(draw_.below(60'000)));
      draw_.chance(10) ? strike_worker() : strike_server();
    }
    std::int64_t most = 0;
    for (std::size_t i = 0; i < worker_count_; ++i) most = std::max(most, progress().began[i].load());
    progress().goal = most + 3;
    judge(most + 3);
    return kills_;
  }
  [[nodiscard]] std::string text() const {
    return model_ + ", " + std::to_string(server_count_) + " servers, " + std::to_string(worker_count_) + " workers";
  }

 private:
  [[nodiscard]] Progress& progress() const { return **progress_; }

  [[nodiscard]] Child played(const std::string& role, std::size_t index) const {
    return {"Strike.DISABLED_IsPlayed",
            {{kFolder, folder_},
             {kRole, role},
             {kIndex, std::to_string(index)},
             {kModel, model_},
             {kServerCount, std::to_string(server_count_)},
             {kWorkerCount, std::to_string(worker_count_)}}};
  }

  /// Waits until every server has its tables and a replica, because servers die one at a time, and every worker has
  /// begun: a job ends whose worker 0 dies before the servers have its first weights. False, and a test failure, at the
  /// limit.
  [[nodiscard]] bool await_replicas() const {
    const auto deadline = std::chrono::steady_clock::now() + kBound;
    while (std::chrono::steady_clock::now() < deadline) {
      try {
        const auto may_die = [](const std::string& at) {
          const ServerStatus status = status_of(at, {});
          return status.keeps_replica && status.serves;
        };
        if (have_begun() && std::ranges::all_of(addresses(), may_die)) return true;
      } catch (const Error&) {  // it is still starting
      }
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "not every server has a replica after " << kBound / 1s << " s";
    return false;
  }

  [[nodiscard]] bool have_begun() const {
    const auto of_workers = std::span(progress().began).first(worker_count_);
    return std::ranges::all_of(of_workers, [](const auto& step) { return step > 0; });
  }

  void strike_server() {
    const std::size_t victim = draw_.below(server_count_);
    servers_[victim].kill();
    servers_[victim] = played("server", victim);
    ++kills_;
  }

  void strike_worker() {
    const std::size_t alive = worker_count_ - dead_.size();
    if (alive == 1) return strike_server();
    const std::size_t victim = draw_.below(worker_count_);
    if (!dead_.insert(victim).second) return strike_server();
    workers_[victim].kill();
    ++kills_;
  }

  void judge(std::int64_t goal) {
    const auto deadline = std::chrono::steady_clock::now() + kBound;
    std::optional<std::vector<float>> first;
    for (std::size_t worker = 0; worker < worker_count_; ++worker) {
      if (dead_.contains(worker)) continue;
      while (!workers_[worker].has_ended() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(1ms);
      if (!workers_[worker].has_ended()) {
        ADD_FAILURE() << "worker " << worker << " hangs at step " << progress().began[worker] << " of " << goal;
        continue;
      }
      EXPECT_EQ(workers_[worker].await_exit(), 0) << "worker " << worker;
      const std::vector<float> weights = weights_of(worker);
      if (!first) judge(weights, goal);
      const auto differs = std::ranges::mismatch(weights, first.value_or(weights));
      if (differs.in1 != weights.end())
        ADD_FAILURE() << "worker " << worker << " counts " << *differs.in1 << " at " << differs.in1 - weights.begin()
                      << ", another one " << *differs.in2;
      first = weights;
    }
  }

  [[nodiscard]] std::vector<float> weights_of(std::size_t worker) const {
    std::vector<float> weights(kElements);
    std::ifstream in(folder_ + "/" + std::to_string(worker), std::ios::binary);
    in.read(reinterpret_cast<char*>(weights.data()), static_cast<std::streamsize>(kElements * sizeof(float)));
    return weights;
  }

  /// Every update of a surviving worker counts once; of a killed worker, at least the updates that others saw, and at
  /// most those that it sent. In lockstep a step without a worker is the average of fewer.
  void judge(std::span<const float> weights, std::int64_t goal) const {
    if (model_ == "bsp" && !dead_.empty()) return;
    std::size_t wrong = 0;
    for (const std::size_t elements : kTables) {
      for (std::size_t i = 0; i < elements; ++i) {
        const std::size_t owner = i % worker_count_;
        const auto count = static_cast<std::int64_t>(weights[i]);
        const bool is_dead = dead_.contains(owner);
        const std::int64_t least = is_dead ? progress().known[owner].load() : goal;
        const std::int64_t most = is_dead ? progress().began[owner].load() : goal;
        if ((count < least || count > most) && ++wrong == 1)
          ADD_FAILURE() << "weight " << i << " of " << elements << ", worker " << owner << "'s, counts " << weights[i]
                        << "; allowed: " << least << " to " << most;
      }
      weights = weights.subspan(elements);
    }
  }

  test::Draw draw_;
  const std::string model_;
  const std::size_t server_count_, worker_count_;
  std::string folder_;
  std::unique_ptr<SharedProgress> progress_;
  std::vector<Child> servers_, workers_;
  std::set<std::size_t> dead_;
  std::size_t kills_ = 0;
};

TEST(Strikes, AtAnyMomentLoseNoAcknowledgedUpdateAndApplyNoneTwice) {
  std::size_t kills = 0;
  for (const std::uint64_t seed : test::seeds(test::kSanitized ? 1 : 4)) {
    Struck job(seed);
    kills += job.run();
    if (HasFailure()) {
      std::printf("%s\n%s\n", job.text().c_str(), test::replay("test_service", "Strikes.*", seed).c_str());
      break;
    }
  }
  std::printf("%zu kills\n", kills);
}

}  // namespace
}  // namespace syncopate
