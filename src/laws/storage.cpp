// The laws of a storage, in drawn jobs whose servers get replicas halfway.
#include "server/storage.hpp"

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/random.hpp"
#include "base/require.hpp"
#include "laws/cases.hpp"
#include "laws/immediate_job.hpp"

namespace syncopate {

namespace {

using server::Clock;
using server::ServerTables;
using server::Setup;

/// The state that a job leaves.
struct Outcome {
  bool has_ended = false;
  std::vector<std::vector<float>> weights{};  ///< by worker, of all tables
  bool has_equal_replicas = true, has_equal_memory = true;
};

void draw(std::span<float> values, std::initializer_list<std::uint64_t> of) {
  const base::CounterRandom random(of);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.uniform(i)) - 0.5F;
}

std::vector<std::string> images_of(ServerTables& tables) {
  std::vector<std::string> images;
  static_cast<void>(tables.hand_over([&](const server::Record& record) {
    if (const auto* const image = std::get_if<server::change::Image>(&record.change))
      images.emplace_back(server::text_of(image->image));
  }));
  return images;
}

bool equal_bits(std::span<const float> one, std::span<const float> other) {
  return std::ranges::equal(std::as_bytes(one), std::as_bytes(other));
}

/// The memory of a job's workers, as the storage reads and writes it.
class Memory final {
 public:
  Memory(const StorageCheck& with, const Setup& setup)
      : with_(with), storages_(server::storages_of(setup.storage, setup.catalogue)) {}

  Buffer made(std::size_t elements) {
    if (with_.memory) return with_.memory(elements);
    return std::span(own_.emplace_back(elements));
  }
  [[nodiscard]] std::vector<float> read(const Buffer& buffer) const {
    std::vector<float> values(buffer.count);
    if (storages_.load)
      storages_.load(buffer, values);
    else
      std::memcpy(values.data(), buffer.data, buffer.bytes().size());
    return values;
  }
  void write(std::span<const float> values, const Buffer& buffer) const {
    if (storages_.store)
      storages_.store(values, buffer);
    else
      std::memcpy(buffer.data, values.data(), values.size_bytes());
  }

 private:
  const StorageCheck& with_;
  const server::Storages storages_;
  std::deque<std::vector<float>> own_;
};

Outcome outcome_of(const StorageCheck& with, const Setup& setup, std::uint64_t seed) {
  Memory memory(with, setup);
  std::vector<std::vector<Buffer>> buffers(setup.workers);
  laws::ImmediateJob job(setup, [&](std::size_t worker, std::size_t table) {
    std::vector<float> first(setup.tables[table].elements);
    draw(first, {seed, table});
    const Buffer& buffer = buffers[worker].emplace_back(memory.made(first.size()));
    memory.write(first, buffer);
    return buffer;
  });
  Outcome outcome;
  std::vector<ServerTables*> replicas;
  for (std::int64_t step = 0; step < with.steps; ++step) {
    if (step == with.steps / 2)
      for (std::size_t index = 0; index < setup.servers; ++index) replicas.push_back(&job.replica(index));
    if (!job.step(0.1, [&](std::size_t worker, Clock at, std::size_t table, std::span<float> gradient) {
          draw(gradient, {seed, table, worker, static_cast<std::uint64_t>(at)});
        }))
      return outcome;
  }
  outcome.has_ended = job.finish();
  for (const auto& tables : buffers) {
    std::vector<float>& all = outcome.weights.emplace_back();
    for (const Buffer& buffer : tables) {
      const std::vector<float> values = memory.read(buffer);
      all.insert(all.end(), values.begin(), values.end());
      memory.write(values, buffer);
      outcome.has_equal_memory = outcome.has_equal_memory && equal_bits(memory.read(buffer), values);
    }
  }
  for (std::size_t index = 0; index < setup.servers; ++index)
    outcome.has_equal_replicas =
        outcome.has_equal_replicas && images_of(job.server(index)) == images_of(*replicas[index]);
  return outcome;
}

Setup drawn_setup(const std::string& storage, const Catalogue& catalogue, std::uint64_t seed,
                  const StorageCheck& with) {
  const base::CounterRandom random{seed};
  const auto drawn = [&](std::size_t most, std::uint64_t counter) -> std::size_t {
    return 1 + random.below(static_cast<std::uint32_t>(most), counter);
  };
  return {.tables = {{"front", drawn(with.most_elements, 0)}, {"back", drawn(with.most_elements, 1)}},
          .workers = drawn(with.most_workers, 2),
          .servers = drawn(2, 3),
          .consistency = seed % 2 == 0 ? "bsp" : "ssp:1",
          .storage = storage,
          .coding = {.codec = random.uniform(4) < 0.5 ? "none" : "int8", .dense_below = 1},
          .optimizer = "sgd",
          .catalogue = catalogue};
}

std::optional<BrokenLaw> broken_in_job(const StorageCheck& with, const Setup& setup, std::uint64_t seed) {
  const Outcome job = outcome_of(with, setup, seed), again = outcome_of(with, setup, seed);
  const std::string under = fmt::format("{} workers under {}", setup.workers, setup.consistency);
  if (!job.has_ended) return BrokenLaw{.law = "no deadlock", .text = fmt::format("{} wait forever", under)};
  for (std::size_t worker = 0; worker < setup.workers; ++worker) {
    if (!equal_bits(job.weights[worker], job.weights[0]))
      return BrokenLaw{.law = "equal weights",
                       .text = fmt::format("of {}, worker {} ends with other weights than worker 0", under, worker)};
    if (!equal_bits(job.weights[worker], again.weights[worker]))
      return BrokenLaw{.law = "equal bits",
                       .text = fmt::format("{} end with other weights when the job runs again", under)};
  }
  if (!job.has_equal_replicas)
    return BrokenLaw{.law = "nothing remembered",
                     .text = fmt::format("of {}, a replica that joins after {} of {} steps differs from its server at "
                                         "the end",
                                         under, with.steps / 2, with.steps)};
  if (!job.has_equal_memory)
    return BrokenLaw{.law = "equal memory", .text = "load reads other values than store wrote"};
  return std::nullopt;
}

}  // namespace

std::optional<BrokenLaw> check_storage(const server::Storage& storage, const StorageCheck& with) {
  base::require(with.steps >= 2 && with.most_workers >= 1 && with.most_elements >= 1,
                "{} steps, {} workers and {} elements; allowed: at least 2 steps, and 1 of the others", with.steps,
                with.most_workers, with.most_elements);
  const Catalogue standard;
  const auto entries = standard.storages();
  const Catalogue catalogue = std::ranges::find(entries, &storage) == entries.end() ? standard.with(storage) : standard;
  const std::string name = fmt::format("{}{}{}", storage.name, with.parameter.empty() ? "" : ":", with.parameter);
  static_cast<void>(server::storages_of(name, catalogue));
  return laws::first_broken("storage " + name, with.seed, with.cases, [&](std::uint64_t seed) {
    return broken_in_job(with, drawn_setup(name, catalogue, seed, with), seed);
  });
}

}  // namespace syncopate
