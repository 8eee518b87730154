// Contenders of a benchmark: what each offers, and how each is started so that the comparison is fair to it.
#include "bench/contenders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <thread>

namespace syncopate::tools::bench {
namespace {

namespace fs = std::filesystem;

std::string own_path() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "" : path;
}

/// The first of the programs that the folders of `path`, separated by colons, have; empty if they have none.
std::string on_path(const std::vector<std::string>& programs, const std::string& path = own_path()) {
  for (const std::string& program : programs) {
    std::istringstream folders(path);
    for (std::string folder; std::getline(folders, folder, ':');)
      if (const std::string file = folder + "/" + program; access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// Intel MPI runs in two ways: polling, as by default, and with a poll that yields the processor.
constexpr std::string_view kYielding = "intelmpi_yield";

bool is_of_intel(const std::string& name) { return name == "intelmpi" || name == kYielding || name == "oneccl"; }

std::string beside(const std::string& program, const std::string& name) {
  return (fs::path(program).parent_path() / ("contender_" + (name == kYielding ? "intelmpi" : name))).string();
}

/// The virtual environment in the build folder that scripts/contenders fills with Intel's packages.
std::string root_of_intel(const std::string& program) {
  return (fs::path(program).parent_path() / "../../contenders").lexically_normal().string();
}

std::string launcher_of(const std::string& name, const std::string& program) {
  if (is_of_intel(name)) return on_path({"mpiexec.hydra"}, root_of_intel(program) + "/bin");
  return on_path(name == "openmpi" ? std::vector<std::string>{"mpirun.openmpi", "mpirun"}
                                   : std::vector<std::string>{"mpirun.mpich", "mpirun"});
}

/// Without a lab MPI ranks share memory, Gloo uses the loopback device, and this library the configured transport.
std::string transport_of(const std::string& name, const Task& task) {
  if (name == "ours") return task.transport;
  return name == "gloo" || !task.lab.empty() ? "tcp" : "shm";
}

std::string algorithms_of(const std::string& name, const Task& task) {
  if (name == "ours") return fmt::format("{}", fmt::join(task.algorithms, ","));
  return name == "gloo" && task.collective == Collective::allreduce ? "ring,bcube" : "auto";
}

std::string memories_of(const std::string& name, const Task& task) {
  return name == "ours" ? fmt::format("{}", fmt::join(task.memories, ",")) : "own";
}

/// The Job (bench/contender/measure.hpp) as `key=value` words.
std::vector<std::string> job_words(const std::string& name, const Task& task) {
  return {"contender=" + (name == "ours" ? "syncopate" : name),
          "transport=" + transport_of(name, task),
          "memory=" + memories_of(name, task),
          "collective=" + std::string(name_of(task.collective)),
          "algorithms=" + algorithms_of(name, task),
          fmt::format("bytes={}", fmt::join(task.bytes, ",")),
          "dtype=" + std::string(name_of(task.dtype)),
          "op=" + std::string(name_of(task.op)),
          fmt::format("root={}", task.root),
          fmt::format("size={}", task.ranks),
          fmt::format("budget={}", task.budget_s / task.rounds)};
}

/// By default Open MPI binds the two ranks of different emulated hosts to core 0 of this machine, and polls without
/// yielding; with more ranks than cores that measures the scheduler. Between hosts it uses its TCP, not what it
/// detects on the machine. Agents start the daemons of the other hosts, in one level.
std::vector<std::string> openmpi_command(const Task& task, const Place& place) {
  std::vector<std::string> words{
      launcher_of("openmpi", place.program), "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (geteuid() == 0) add({"--allow-run-as-root"});
  if (place.hosts.empty()) {
    add({"--oversubscribe"});
  } else {
    add({"--host", fmt::format("{}", fmt::join(place.hosts, ","))});
    add({"--mca", "plm_rsh_agent", "sh " + place.scratch + "/agent"});
    add({"--mca", "plm_rsh_no_tree_spawn", "1"});
    add({"--mca", "oob_tcp_if_include", place.interface});
    add({"--mca", "pml", "ob1", "--mca", "btl", "tcp,self"});
    add({"--mca", "btl_tcp_if_include", place.interface});
  }
  add({"-np", std::to_string(task.ranks)});
  return words;
}

/// MPICH has no switch that makes it give way: with more ranks than cores its small messages measure the scheduler.
std::vector<std::string> mpich_command(const Task& task, const Place& place) {
  std::vector<std::string> words{launcher_of("mpich", place.program)};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (!place.hosts.empty()) {
    add({"-hosts", fmt::format("{}", fmt::join(place.hosts, ",")), "-ppn", "1", "-iface", place.interface});
    add({"-launcher", "ssh", "-launcher-exec", place.scratch + "/agent"});
    add({"-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", place.interface});
  }
  add({"-np", std::to_string(task.ranks)});
  return words;
}

/// On one host ranks share memory; between hosts they use libfabric's TCP, and are not pinned, because each would take
/// the first core of this machine. oneCCL starts as an MPI program and exchanges by MPI. `CCL_YIELD` and
/// `I_MPI_THREAD_YIELD` make a waiting rank call sched_yield. oneCCL yields only where ranks share cores: there it does
/// not finish without, and elsewhere yielding makes its small messages slower.
std::vector<std::string> intel_command(const std::string& name, const Task& task, const Place& place) {
  const std::string root = root_of_intel(place.program);
  std::vector<std::string> words{"env", "I_MPI_ROOT=" + root, "LD_LIBRARY_PATH=" + root + "/lib",
                                 "PATH=" + root + "/bin:" + own_path()};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  add({place.hosts.empty() ? "I_MPI_FABRICS=shm" : "I_MPI_FABRICS=ofi"});
  const bool crowded = static_cast<unsigned>(task.ranks) > std::thread::hardware_concurrency();
  if (name == kYielding || (name == "oneccl" && crowded)) add({"I_MPI_THREAD_YIELD=3"});
  if (name == "oneccl")
    add({"CCL_ATL_TRANSPORT=mpi", "CCL_LOG_LEVEL=error", crowded ? "CCL_YIELD=sched_yield" : "CCL_YIELD=pause"});
  if (!place.hosts.empty()) add({"I_MPI_PIN=0", "FI_PROVIDER=tcp", "FI_TCP_IFACE=" + place.interface});
  add({launcher_of(name, place.program)});
  if (place.hosts.empty()) {
    add({"-bootstrap", "fork", "-ppn", std::to_string(task.ranks)});
  } else {
    add({"-bootstrap", "ssh", "-bootstrap-exec", place.scratch + "/agent", "-iface", place.interface});
    add({"-hosts", fmt::format("{}", fmt::join(place.hosts, ",")), "-ppn", "1"});
  }
  add({"-n", std::to_string(task.ranks)});
  return words;
}

}  // namespace

std::vector<std::string> contender_names() {
  return {"ours", "gloo", "openmpi", "mpich", "intelmpi", std::string(kYielding), "oneccl"};
}

std::optional<std::string> hindrance(const std::string& name, const Task& task, const std::string& program) {
  if (name == "ours") return std::nullopt;
  const std::string file = beside(program, name);
  if (access(file.c_str(), X_OK) != 0)
    return fmt::format("{} does not exist; run scripts/contenders, configure and build again", file);
  if (name != "gloo" && task.ranks_per_host > 1)
    return "between ranks of one emulated host it may take shared memory, and then takes it between these hosts too";
  if (name != "gloo" && launcher_of(name, program).empty())
    return "its launcher is not installed; run scripts/contenders";
  if (name == "oneccl" && task.collective != Collective::allreduce && task.collective != Collective::broadcast &&
      task.collective != Collective::reduce)
    return fmt::format("it is compared by allreduce, broadcast and reduce, not {}", name_of(task.collective));
  if (name == "gloo" && task.collective == Collective::reduce_scatter)
    return "its current interface has no reduce-scatter";
  if (name == "gloo" && (task.collective == Collective::gather || task.collective == Collective::scatter))
    for (const std::uint64_t bytes : task.bytes)
      if (bytes % (static_cast<std::uint64_t>(task.ranks) * size_of(task.dtype)) != 0)
        return fmt::format("its {} takes equal parts only, and {} bytes are none", name_of(task.collective), bytes);
  if (task.dtype == DType::f16 || task.dtype == DType::bf16 || task.dtype == DType::u8)
    return fmt::format("{} is not compared; allowed: f32, f64, i32, i64", name_of(task.dtype));
  if (task.op == ReduceOp::average) return "it has no average; allowed: sum, min, max, product";
  if (task.transport == "inproc") return "its ranks are processes, and --transport inproc is requested";
  return std::nullopt;
}

std::size_t rows_of(const std::string& name, const Task& task) {
  return parts_of(algorithms_of(name, task)).size() * parts_of(memories_of(name, task)).size() * task.bytes.size();
}

Entry entry_of(const std::string& name, const Task& task, const Place& place) {
  Entry entry;
  if (name == "ours") {
    entry.command = {place.program, "bench", "worker"};
    entry.starts_ranks = task.transport == "inproc";
  } else if (name == "gloo") {
    const std::string where = place.interface.empty() ? "address=127.0.0.1" : "interface=" + place.interface;
    entry.command = {beside(place.program, name), "store=" + place.scratch, where};
  } else {
    entry.command = name == "openmpi" ? openmpi_command(task, place)
                    : name == "mpich" ? mpich_command(task, place)
                                      : intel_command(name, task, place);
    entry.command.push_back(beside(place.program, name));
    entry.starts_ranks = true;
  }
  const std::vector<std::string> words = job_words(name, task);
  entry.command.insert(entry.command.end(), words.begin(), words.end());
  return entry;
}

}  // namespace syncopate::tools::bench
