// The block method: how every contender of a benchmark is timed and checked, and the raw rows it prints.
//
// Per (algorithm, size): one call whose answer is checked; calibration; then blocks of k back-to-back calls with a
// barrier before each block. A block lasts as long as on its slowest rank, its processor time is user + system of all
// threads of all ranks. At the end the vector is filled again and every element of one more answer is checked.
// All calls work in place. In-place sums grow from call to call until they are infinite: they are as fast, and no
// value is ever subnormal. This header and pattern.hpp need nothing but the standard library and POSIX.
#pragma once

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "pattern.hpp"

namespace contender {

/// The measurement of one process of a contender; the controller passes it as `key=value` arguments.
struct Job {
  std::string contender;
  std::string transport;
  std::string collective = "allreduce";
  std::vector<std::string> algorithms{"auto"};
  std::vector<std::size_t> bytes;  ///< of the full vector
  std::string dtype = "f32";
  std::string op = "sum";
  int root = 0;
  double budget_s = 0.5;  ///< timed seconds per (algorithm, size)
  int rank = 0;
  int size = 1;
  std::string memory = "own";  ///< whose memory vectors lie in: the program's "own", or what the library gives
  bool apart = false;          ///< a barrier behind every call: no two calls overlap, and its time is part of theirs
  bool threads = false;        ///< ranks are threads of one process and share its processor clock: rank 0 reports it
};

inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

inline std::map<std::string, std::string> arguments(int argc, const char* const* argv) {
  std::map<std::string, std::string> result;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos) throw std::runtime_error("not of the form key=value: " + argument);
    result[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  return result;
}

/// Rank and size come from the arguments too, unless the caller knows them (MPI).
inline Job job_of(const std::map<std::string, std::string>& given) {
  Job job;
  const auto take = [&](const char* key, std::string& into) {
    if (const auto found = given.find(key); found != given.end()) into = found->second;
  };
  std::string algorithms = "auto", bytes, root = "0", budget = "0.5", rank = "0", size = "1";
  take("contender", job.contender), take("transport", job.transport), take("collective", job.collective);
  take("memory", job.memory);
  take("algorithms", algorithms), take("bytes", bytes), take("dtype", job.dtype), take("op", job.op);
  take("root", root), take("budget", budget), take("rank", rank), take("size", size);
  job.algorithms = split(algorithms);
  for (const std::string& text : split(bytes)) job.bytes.push_back(std::stoull(text));
  job.root = std::stoi(root), job.rank = std::stoi(rank), job.size = std::stoi(size), job.budget_s = std::stod(budget);
  return job;
}

/// How ranks agree outside the timed stretches; given by the contender itself.
struct Ties {
  std::function<void()> barrier;
  std::function<void(std::vector<double>&)> maximum;  ///< over all ranks, on all ranks
  std::function<void(std::vector<double>&)> sum;
};

/// One collective of a contender on a vector in this rank's memory, and where its answer will lie.
struct Call {
  std::function<void()> run;
  VectorPart answer;
  void* result = nullptr;  ///< an all-to-all's second vector; else the answer lies in the first one
};

/// Which machine this is, as a whole number that doubles hold; a barrier can be checked where all ranks share a clock.
inline double machine() {
  char text[64] = {};
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (std::fgets(text, sizeof text, file) == nullptr) text[0] = 0;
    std::fclose(file);
  }
  return static_cast<double>(std::hash<std::string_view>{}(text) >> 12);
}

/// User + system time of all threads of this process.
inline double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Blocks {
  long calls = 1;                   ///< per block
  std::vector<double> seconds;      ///< per call, slowest rank
  std::vector<double> cpu_seconds;  ///< per call, all ranks
};

inline void run_calls(const Job& job, const Ties& ties, const Call& call, long calls) {
  for (long i = 0; i < calls; ++i) {
    call.run();
    if (job.apart) ties.barrier();
  }
}

inline double timed(const Job& job, const Ties& ties, const Call& call, long calls) {
  ties.barrier();
  const double begin = wall_seconds();
  run_calls(job, ties, call, calls);
  std::vector<double> taken{wall_seconds() - begin};
  ties.maximum(taken);
  return taken[0] / static_cast<double>(calls);
}

/// Two to three blocks that fill the budget; short calls are calibrated a second time, because the first of them also
/// pays for waking everybody up.
inline Blocks calibrate(const Job& job, const Ties& ties, const Call& call) {
  // Roots run ahead, and how far is bounded; where all wait for all, a block of 20 ms outlasts what warms up.
  const bool has_root = job.collective == "broadcast" || job.collective == "reduce" || job.collective == "gather" ||
                        job.collective == "scatter";
  const long most_calls = has_root ? 2000 : 40000;
  double once = timed(job, ties, call, 1);
  if (once < job.budget_s / 50) once = timed(job, ties, call, 10);
  Blocks blocks;
  const std::size_t count = once * 3 <= job.budget_s ? 3 : 2;
  blocks.seconds.resize(count);
  blocks.cpu_seconds.resize(count);
  const double fit = job.budget_s / static_cast<double>(count) / std::max(once, 1e-9);
  blocks.calls = fit >= static_cast<double>(most_calls) ? most_calls : std::max(1L, static_cast<long>(fit));
  return blocks;
}

inline Blocks run_blocks(const Job& job, const Ties& ties, const Call& call) {
  Blocks blocks = calibrate(job, ties, call);
  const auto calls = static_cast<double>(blocks.calls);
  for (std::size_t b = 0; b < blocks.seconds.size(); ++b) {
    ties.barrier();
    const double cpu = processor_seconds(), begin = wall_seconds();
    run_calls(job, ties, call, blocks.calls);
    blocks.seconds[b] = (wall_seconds() - begin) / calls;
    blocks.cpu_seconds[b] = job.threads && job.rank > 0 ? 0 : (processor_seconds() - cpu) / calls;
  }
  ties.maximum(blocks.seconds);
  ties.sum(blocks.cpu_seconds);
  return blocks;
}

/// A barrier's answer: ranks that come one after the other leave it when the last has come, not before. Without a
/// common clock there is none to check.
inline bool nobody_left_early(const Job& job, const Ties& ties, const Call& call) {
  std::vector<double> machines{machine(), -machine()};
  ties.maximum(machines);
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * (job.rank % 4)));
  const double came = wall_seconds();
  call.run();
  std::vector<double> times{came, -wall_seconds()};
  ties.maximum(times);
  return machines[0] != -machines[1] || times[0] <= -times[1];
}

inline void print_list(std::string& line, const char* key, const std::vector<double>& values) {
  char number[40];
  line += std::string(",\"") + key + "\":[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::snprintf(number, sizeof number, "%s%.9g", i ? "," : "", values[i]);
    line += number;
  }
  line += "]";
}

/// A raw row: one JSON object on one line, read back by the controller.
inline std::string row(const Job& job, const std::string& algorithm, std::size_t bytes, const Blocks& blocks) {
  std::string line = "{\"collective\":\"" + job.collective + "\",\"algorithm\":\"" + algorithm + "\",\"contender\":\"" +
                     job.contender + "\",\"transport\":\"" + job.transport + "\",\"memory\":\"" + job.memory +
                     "\",\"ranks\":" + std::to_string(job.size) + ",\"bytes\":" + std::to_string(bytes) +
                     ",\"dtype\":\"" + job.dtype + "\",\"calls\":" + std::to_string(blocks.calls);
  print_list(line, "block_seconds", blocks.seconds);
  print_list(line, "block_cpu_seconds", blocks.cpu_seconds);
  return line;
}

/// Makes the call for (algorithm, data); `data` stays where it is.
template <class T>
using Maker = std::function<Call(const std::string& algorithm, std::span<T> data)>;
/// The measured collective, and memory for its longest vector.
template <class T>
struct Subject {
  Maker<T> make;
  std::span<T> memory;
};
/// Takes each finished row, on every rank; usually rank 0 prints it.
using Sink = std::function<void(const std::string& line)>;

/// Measures every algorithm at every size.
template <class T>
void measure(const Job& job, const Ties& ties, const Subject<T>& subject, const Sink& sink) {
  const Pattern pattern{job.collective, job.op, static_cast<std::uint32_t>(job.size),
                        static_cast<std::uint32_t>(job.root)};
  for (const std::size_t bytes : job.bytes)
    for (const std::string& algorithm : job.algorithms) {
      const std::span<T> data(subject.memory.data(), bytes / sizeof(T));
      const Call call = subject.make(algorithm, data);
      T* const result = call.result == nullptr ? data.data() : static_cast<T*>(call.result);
      const auto answers_right = [&] {
        if (job.collective == "barrier") return nobody_left_early(job, ties, call);
        if (call.result != nullptr) std::fill_n(result, data.size(), T{});
        pattern.ask<T>(static_cast<std::uint32_t>(job.rank), data);
        ties.barrier();
        call.run();
        return pattern.right<T>({result, data.size()}, call.answer, data.size());
      };
      bool right = answers_right();
      const Blocks blocks = run_blocks(job, ties, call);
      right = answers_right() && right;
      std::vector<double> wrong{right ? 0.0 : 1.0};
      ties.maximum(wrong);
      sink(row(job, algorithm, bytes, blocks) + ",\"correct\":" + (wrong[0] == 0 ? "true" : "false") + "}");
    }
}

template <class T>
[[nodiscard]] std::size_t longest_vector(const Job& job) {
  return *std::max_element(job.bytes.begin(), job.bytes.end()) / sizeof(T);
}

/// The measurement in the program's own memory.
template <class T>
void measure(const Job& job, const Ties& ties, const Maker<T>& make, const Sink& sink) {
  std::vector<T> memory(longest_vector<T>(job));
  measure<T>(job, ties, Subject<T>{make, memory}, sink);
}

inline void print_on_rank_zero(const Job& job, const std::string& line) {
  if (job.rank != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace contender
