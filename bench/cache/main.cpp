// bench_cache: how often a set too large for the tiers is hit, pinned and under LRU, and what the disk's format costs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <numeric>
#include <thread>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "cache/disk/store.hpp"
#include "decoded.hpp"
#include "syncopate/cache.hpp"

namespace {

using namespace syncopate;
namespace fs = std::filesystem;

/// Records of equal length whose bytes are a function of their number.
class DrawnSource final : public input::Source {
 public:
  DrawnSource(std::size_t records, std::size_t length) : records_(records), length_(length) {}
  [[nodiscard]] std::size_t records() const noexcept override { return records_; }
  [[nodiscard]] std::size_t bytes(std::size_t) const override { return length_; }
  [[nodiscard]] std::int64_t label(std::size_t) const override { return 0; }
  [[nodiscard]] std::string name(std::size_t record) const override { return fmt::format("record {}", record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return 1; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    for (std::size_t at = 0; at + 8 <= into.size(); at += 8) base::put(into, at, base::mixed(record + at));
  }

 private:
  std::size_t records_, length_;
};

/// Hits of a cache of `room` records that evicts the one used longest ago.
class Lru final {
 public:
  explicit Lru(std::size_t room) : room_(room) {}
  bool use(std::uint32_t sample) {
    const auto found = where_.find(sample);
    const bool hit = found != where_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(sample);
    where_[sample] = order_.begin();
    if (order_.size() > room_) {
      where_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }

 private:
  std::size_t room_;
  std::list<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> where_;
};

constexpr std::uint64_t kEpochs = 6, kSeed = 1;
constexpr std::size_t kBatch = 64;

constexpr std::uint64_t kRanks = 4;

/// Ranks as threads, each with `room` bytes of memory and an origin of its own, take all epochs. Calls
/// `visit(rank, row)` for each epoch.
void take_epochs(const std::vector<std::unique_ptr<input::Source>>& origins, std::uint64_t room, const auto& visit) {
  auto groups = Group::threads(kRanks);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    threads.emplace_back([&, rank] {
      const input::Source& source = *origins[rank];
      const auto cache = cache::Cache::form(*groups[rank], source, kSeed, {.memory_bytes = room});
      for (input::Progress at{}; at.epoch < kEpochs;) {
        (void)cache->read({at, kBatch});
        input::advance(at, std::min(kBatch, source.records() - at.sample), source.records());
      }
      for (const cache::Counters& row : cache->counters()) visit(rank, row);
    });
}

/// Sources that give what `source` has at `rate` bytes a second to each rank.
std::vector<std::unique_ptr<input::Source>> origins_of(const DrawnSource& source, double rate) {
  std::vector<std::unique_ptr<input::Source>> origins;
  for (std::uint64_t rank = 0; rank < kRanks; ++rank) origins.push_back(cache::throttled(source, rate));
  return origins;
}

/// Share of hits after the first epoch, of ranks that hold one of `times` parts of the set together.
double pinned_rate(const DrawnSource& source, std::uint64_t times) {
  std::vector<std::uint64_t> missed(kRanks);
  take_epochs(
      origins_of(source, 1e12), source.records() / times / kRanks * source.bytes(0),
      [&](std::size_t rank, const cache::Counters& row) { missed[rank] += row.epoch > 0 ? row.origin.records : 0; });
  const std::uint64_t sum = std::accumulate(missed.begin(), missed.end(), std::uint64_t{0});
  return 1 - static_cast<double>(sum) / static_cast<double>((kEpochs - 1) * source.records());
}

/// Seconds that the slowest rank reads in the first epoch, and in a later one on average.
void slow_origin(const DrawnSource& source, double rate) {
  std::vector<double> first(kRanks), later(kRanks);
  std::vector<std::uint64_t> bytes(kRanks);
  take_epochs(origins_of(source, rate), source.records() / kRanks * source.bytes(0),
              [&](std::size_t rank, const cache::Counters& row) {
                const double seconds = row.memory.seconds + row.peers.seconds + row.origin.seconds;
                (row.epoch == 0 ? first : later)[rank] += row.epoch == 0 ? seconds : seconds / (kEpochs - 1);
                bytes[rank] += row.epoch > 0 ? row.origin.bytes : 0;
              });
  fmt::print(
      "\n{} records of {} bytes, an origin of {} MB/s for each of {} ranks: epoch 1 {:.3f} s, later {:.4f} s, {} bytes "
      "from the origin then\n",
      source.records(), source.bytes(0), rate / 1e6, kRanks, *std::ranges::max_element(first),
      *std::ranges::max_element(later), std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}));
}

double lru_rate(const DrawnSource& source, std::uint64_t times) {
  input::Order order(source.records(), kSeed);
  Lru lru(source.records() / times);
  std::uint64_t hits = 0;
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (const std::uint32_t sample : order.share({.epoch = epoch}, source.records(), 0, 1).mine)
      hits += lru.use(sample) && epoch > 0;
  return static_cast<double>(hits) / static_cast<double>((kEpochs - 1) * source.records());
}

double seconds_of(const auto& work) {
  const base::SteadyClock clock;
  const base::Time begin = clock.now();
  work();
  return base::seconds(clock.now() - begin);
}

/// Microseconds of a record.
struct Speed {
  double write, open, read;
};

Speed of_store(const std::string& folder, const DrawnSource& source, const std::vector<std::uint32_t>& order) {
  std::vector<std::byte> bytes(source.bytes(0));
  source.read(0, bytes);
  Speed speed{};
  const auto open = [&] {
    auto store = std::make_unique<cache::disk::Store>(cache::disk::Place{folder, 1ull << 40}, source, Log{});
    store->retain([](std::uint32_t) { return true; });
    return store;
  };
  auto store = open();
  speed.write = seconds_of([&] {
    for (const std::uint32_t sample : order) store->keep(sample, bytes);
  });
  store.reset();
  speed.open = seconds_of([&] { store = open(); });
  speed.read = seconds_of([&] {
    for (const std::uint32_t sample : order)
      if (!store->read(sample, bytes)) throw std::logic_error("a record is lost");
  });
  return speed;
}

/// The baseline with one file per record: a temporary file that is renamed, with the hash after the bytes.
Speed of_files(const std::string& folder, const DrawnSource& source, const std::vector<std::uint32_t>& order) {
  using cache::disk::File;
  const File opened = cache::disk::own_folder(folder);
  std::vector<std::byte> bytes(source.bytes(0) + 8);
  source.read(0, base::Bytes(bytes).first(source.bytes(0)));
  base::put(bytes, source.bytes(0), cache::disk::hash_of(base::Bytes(bytes).first(source.bytes(0))));
  const auto name = [](std::uint32_t sample) { return fmt::format("{}", sample); };
  Speed speed{};
  speed.write = seconds_of([&] {
    for (const std::uint32_t sample : order) (void)cache::disk::replace_file(opened, name(sample), bytes);
  });
  std::uint64_t found = 0;
  speed.open = seconds_of([&] {
    for (const auto& file : fs::directory_iterator(folder)) found += file.file_size() == bytes.size();
  });
  speed.read = seconds_of([&] {
    for (const std::uint32_t sample : order)
      if (!File(opened, name(sample), O_RDONLY).read_at(0, bytes) ||
          cache::disk::hash_of(base::Bytes(bytes).first(source.bytes(0))) !=
              base::get<std::uint64_t>(bytes, source.bytes(0)))
        throw std::logic_error("a record is lost");
  });
  return speed;
}

void compare_formats(std::size_t records, std::size_t length) {
  const std::string folder = (fs::temp_directory_path() / fmt::format("syncopate-bench-{}", ::getpid())).string();
  const DrawnSource source(records, length);
  const auto order = input::Order(records, kSeed).share({}, records, 0, 1).mine;
  for (int round = 0; round < 3; ++round) {
    const auto row = [&](const char* format, const Speed& speed) {
      const double micro = 1e6 / static_cast<double>(records);
      fmt::print("| {} | {} | {:.1f} | {:.2f} | {:.1f} |\n", format, length, speed.write * micro, speed.open * micro,
                 speed.read * micro);
    };
    row("two files", of_store(folder + "/store", source, order));
    row("a file each", of_files(folder + "/files", source, order));
    fs::remove_all(folder);
  }
}

}  // namespace

/// bench_cache; or bench_cache decoded FOLDER [SIDE [ROUNDS]]: pictures of a set, decoded and encoded in the cache.
int main(int argc, char** argv) {
  if (argc > 2 && std::string_view(argv[1]) == "decoded") {
    compare_tiers(argv[2], argc > 3 ? std::stoi(argv[3]) : 224, argc > 4 ? std::stoi(argv[4]) : 9);
    return 0;
  }
  const DrawnSource source(20'000, 64);
  fmt::print("| set over tiers | held | hits, pinned (4 ranks) | hits, LRU |\n|---|---|---|---|\n");
  for (const std::uint64_t times : {1, 2, 4})
    fmt::print("| {} | {:.4f} | {:.4f} | {:.4f} |\n", times, 1.0 / static_cast<double>(times),
               pinned_rate(source, times), lru_rate(source, times));
  slow_origin(DrawnSource(4'000, 4096), 2e6);
  fmt::print("\n| format | bytes | write, us | open, us | read, us |\n|---|---|---|---|---|\n");
  compare_formats(20'000, 4096);
  compare_formats(4'000, 110'000);
}
