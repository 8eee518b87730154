// The options of `syncopate bench`: declaration, and validation before anything is started.
#include "bench/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "arguments.hpp"
#include "bench/contenders.hpp"
#include "syncopate/cluster.hpp"
#include "syncopate/error.hpp"
#include "syncopate/plan.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/shelves.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {
namespace {

template <class... Args>
void require(bool condition, fmt::format_string<Args...> message, Args&&... args) {
  if (!condition) throw Misuse(fmt::format(message, std::forward<Args>(args)...));
}

/// Every algorithm of the catalogue that offers the collective for `ranks` ranks.
std::vector<std::string> offering(Collective collective, int ranks) {
  std::vector<std::string> names;
  for (const ShelfEntry& entry : shelf_entries()) {
    if (entry.shelf != "algorithm") continue;
    try {
      (void)plan_collective({.collective = collective, .algorithm = std::string(entry.name), .ranks = ranks});
      names.emplace_back(entry.name);
    } catch (const Misuse&) {
      continue;
    }
  }
  return names;
}

/// Every algorithm with each of the numbers of blocks; one that has no blocks, and 0, by its name alone.
std::vector<std::string> with_blocks(const std::vector<std::string>& names, const Request& request, const Task& task) {
  if (request.blocks.empty()) return names;
  const std::vector<std::string> numbers = parts_of(request.blocks);
  require(!numbers.empty(), "--blocks is empty; give numbers such as 0,16,64");
  std::vector<std::string> tuned;
  for (const std::string& name : names) {
    const auto plans = [&](std::uint32_t blocks) {
      return plan_collective({.collective = task.collective,
                              .algorithm = name,
                              .ranks = task.ranks,
                              .root = task.root,
                              .tuning = {.blocks = blocks}});
    };
    const bool has_blocks = name != "auto" && plans(2) != plans(3);
    for (const std::string& number : numbers) {
      const std::string entry = has_blocks && number != "0" ? name + ":" + number : name;
      if (has_blocks) (void)plans(tuned_algorithm(entry).tuning.blocks);  // throws Misuse for too many
      if (std::ranges::find(tuned, entry) == tuned.end()) tuned.push_back(entry);
    }
  }
  const bool any =
      std::ranges::any_of(tuned, [](const std::string& entry) { return entry.find(':') != std::string::npos; });
  require(any || request.blocks == "0", "--blocks {}, and none of the algorithms {} has blocks", request.blocks,
          fmt::join(names, ", "));
  return tuned;
}

std::vector<std::string> algorithms_of(const Request& request, const Task& task) {
  std::vector<std::string> names;
  for (const std::string& part : parts_of(request.algorithms)) {
    const std::vector<std::string> meant =
        part == "all" ? offering(task.collective, task.ranks) : std::vector<std::string>{part};
    names.insert(names.end(), meant.begin(), meant.end());
  }
  require(!names.empty(), "--algorithm names no algorithm; allowed: auto, all, {}",
          fmt::join(offering(task.collective, task.ranks), ", "));
  for (const std::string& name : names)  // throws Misuse for what does not exist or does not offer it
    (void)plan_collective({.collective = task.collective, .algorithm = name, .ranks = task.ranks, .root = task.root});
  return with_blocks(names, request, task);
}

std::vector<std::uint64_t> sizes_of(const Request& request, const Task& task) {
  constexpr std::uint64_t kTokenBytes = 4;
  if (task.collective == Collective::barrier) return {kTokenBytes};
  const DType dtype = task.dtype;
  const std::uint64_t parts = task.collective == Collective::alltoall ? static_cast<std::uint64_t>(task.ranks) : 1;
  std::vector<std::uint64_t> sizes;
  for (const std::string& text : parts_of(request.bytes)) {
    const std::uint64_t bytes = parse_bytes(text);
    require(bytes > 0 && bytes % size_of(dtype) == 0,
            "--bytes {} is not a whole number of {} elements; allowed: multiples of {} bytes above 0", text,
            name_of(dtype), size_of(dtype));
    require(bytes % (parts * size_of(dtype)) == 0,
            "--bytes {} cannot be divided equally among {} ranks; allowed for alltoall: multiples of {} bytes", text,
            parts, parts * size_of(dtype));
    sizes.push_back(bytes);
  }
  require(!sizes.empty(), "--bytes is empty; give sizes such as 4KiB,1MiB");
  return sizes;
}

void check_contenders(const Request& request, Task& task) {
  task.all_contenders = request.contenders == "all";
  task.contenders = task.all_contenders ? contender_names() : parts_of(request.contenders);
  std::replace(task.contenders.begin(), task.contenders.end(), std::string("syncopate"), std::string("ours"));
  const std::vector<std::string> known = contender_names();
  require(!task.contenders.empty(), "--contenders names none; allowed: all, {}", fmt::join(known, ", "));
  std::vector<std::string_view> names{"all"};
  names.insert(names.end(), known.begin(), known.end());
  for (const std::string& name : task.contenders)
    if (std::ranges::find(known, name) == known.end()) throw Misuse(unknown_name("contender", name, names));
}

/// Where no rank shares memory the two are the same.
std::vector<std::string> memories_of(const Request& request, const Task& task) {
  if (task.collective == Collective::barrier) return {"own"};
  const bool on_one_host = task.lab.empty() || task.ranks_per_host > 1;
  const bool shares = on_one_host && (task.transport == "shm" || task.transport == "auto");
  if (request.memory.empty())
    return shares ? std::vector<std::string>{"group", "own"} : std::vector<std::string>{"own"};
  const std::vector<std::string> names = parts_of(request.memory);
  for (const std::string& name : names) (void)memory_named(name);
  require(!names.empty(), "--memory names none; allowed: group, own");
  return names;
}

void check_place(const Request& request, const Task& task, int job_ranks) {
  require(task.ranks >= 1 && task.ranks <= 256, "--ranks {} is out of range; allowed: 1..256", task.ranks);
  require(request.root >= 0 && request.root < task.ranks, "--root {} is out of range; allowed: 0..{}", request.root,
          task.ranks - 1);
  const bool stays = request.transport == "shm" || request.transport == "inproc";
  require(request.lab.empty() || !stays, "--lab emulates hosts, and --transport {} stays within one; use one of them",
          request.transport);
  require(task.ranks_per_host == 1 || !request.lab.empty(), "--ranks-per-host is for --lab");
  require(task.ranks_per_host >= 1 && task.ranks % task.ranks_per_host == 0,
          "--ranks-per-host {} of {} ranks; allowed: divisors of their number", task.ranks_per_host, task.ranks);
  if (job_ranks == 0) return;
  require(request.ranks == 0 || request.ranks == job_ranks, "--ranks {} inside a job of {} ranks; leave it out",
          request.ranks, job_ranks);
  require(request.lab.empty(), "--lab inside a job; give it to `syncopate run`, and --rate here for the bound");
  require(request.transport != "inproc", "--transport inproc inside a job; the job's ranks are processes");
}

}  // namespace

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::vector<std::string> codecs_of(const std::string& list) {
  std::vector<std::string> codecs;
  for (const std::string& part : parts_of(list)) {
    const bool is_number = part.find_first_not_of("0123456789.eE+-") == std::string::npos;
    if (is_number && !codecs.empty())
      codecs.back() += "," + part;
    else
      codecs.push_back(part);
  }
  return codecs;
}

Task task_of(const Request& request, int job_ranks) {
  Task task;
  task.collective = collective_named(request.collective);
  task.ranks = job_ranks > 0 ? job_ranks : request.ranks == 0 ? 4 : request.ranks;
  task.ranks_per_host = request.ranks_per_host;
  check_place(request, task, job_ranks);
  task.lab = request.lab;
  const std::string& rate = request.rate.empty() ? request.lab : request.rate;
  task.bits_per_s = rate.empty() ? 0 : parse_rate(rate);
  task.transport = request.transport.empty() && job_ranks == 0 ? "auto" : request.transport;
  task.memories = memories_of(request, task);
  task.dtype = dtype_named(request.dtype);
  task.op = reduce_op_named(request.op);
  task.root = request.root;
  task.rounds = request.rounds;
  task.budget_s = request.budget_s;
  task.bytes = sizes_of(request, task);
  task.algorithms = algorithms_of(request, task);
  check_contenders(request, task);
  return task;
}

TunedAlgorithm tuned_algorithm(const std::string& entry) {
  const std::size_t colon = entry.find(':');
  if (colon == std::string::npos) return {entry, {}};
  return {entry.substr(0, colon), {.blocks = static_cast<std::uint32_t>(std::stoul(entry.substr(colon + 1)))}};
}

std::optional<TransportChoice> transport_choice(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(transport_named(name));
}

void declare(CLI::App& app, Request& request) {
  app.add_option("--ranks,-n", request.ranks, "Ranks to start (default 4; inside `syncopate run`: the job's)")
      ->check(between(1, 256));
  app.add_option("--lab", request.lab, "Emulated hosts, one for each rank, with ports of this rate (1gbit)")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("--ranks-per-host", request.ranks_per_host, "With --lab: number of ranks on each emulated host")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--rate", request.rate, "Rate of one rank's port, for the bound, when no lab is started")
      ->type_name("RATE")
      ->check(bit_rate());
  app.add_option("--bytes", request.bytes, "Sizes of the full vector; alltoall: what a rank gives to all")
      ->type_name("BYTES")
      ->check(list_of(byte_size()))
      ->capture_default_str();
  app.add_option("--algorithm", request.algorithms, "Ours: names from `syncopate info`, auto, all")
      ->capture_default_str();
  app.add_option("--blocks", request.blocks,
                 "Ours: numbers of pipeline blocks, for each algorithm that has them; 0: its own choice (default)")
      ->check(list_of(between(0, 65536)));
  app.add_option("--contenders", request.contenders,
                 fmt::format("{}; or all that are installed", fmt::join(contender_names(), ", ")))
      ->capture_default_str();
  app.add_option("--transport", request.transport,
                 "auto (shm within a host, tcp between hosts), tcp, shm (processes of this host) or inproc (threads of "
                 "one process); default auto, inside a job the job's")
      ->check(one_of("transport", {"auto", "tcp", "shm", "inproc"}));
  app.add_option("--memory", request.memory,
                 "Where our vectors lie: group (Group::allocate), own (the program's); default both where ranks share "
                 "memory");
  app.add_option("--dtype", request.dtype, "f32, f64, f16, bf16, i32, i64, u8")->capture_default_str();
  app.add_option("--op", request.op, "sum, min, max, average, product")->capture_default_str();
  app.add_option("--root", request.root, "Root of broadcast, reduce, gather and scatter")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "Interleaved runs of every contender")
      ->check(between(1, 1000))
      ->capture_default_str();
  app.add_option("--budget", request.budget_s, "Timed seconds per row, over all rounds")
      ->check(between(0.001, 3600.0))
      ->capture_default_str();
}

}  // namespace syncopate::tools::bench
