// Kernels against memcpy: bytes read and written per second by one thread, from the first-level cache to main memory.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/cast.hpp"
#include "kernel/norm.hpp"
#include "kernel/reduce.hpp"

namespace syncopate {
namespace {

/// Vectors of small numbers in every type: zero bytes with one set byte per element would be subnormal, so these are
/// the type's one, give or take.
std::vector<std::byte> ones(DType dtype, std::size_t bytes) {
  constexpr std::uint64_t bits[] = {0x3f800000u, 0x3ff0000000000000u, 0x3c00u, 0x3f80u, 1, 1, 1};
  std::vector<std::byte> content(bytes);
  for (std::size_t at = 0; at < bytes; at += size_of(dtype))
    std::memcpy(content.data() + at, &bits[static_cast<int>(dtype)], size_of(dtype));
  return content;
}

/// `moved` bytes are read or written in each iteration.
void count_bytes(benchmark::State& state, std::size_t moved) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * moved));
}

/// The ceiling: one read and one write per byte.
void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> from(bytes), into(bytes);
  for (auto _ : state) {
    std::memcpy(into.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * bytes);
}

/// Two reads and one write per byte, as in a ring's receive-and-reduce.
void reduce(benchmark::State& state, const kernel::Reduction& reduction) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t count = bytes / size_of(reduction.dtype);
  auto into = ones(reduction.dtype, bytes);
  const std::vector<std::byte> from(bytes);  // zeros: the sums stay where they are
  for (auto _ : state) {
    kernel::reduce(reduction, into.data(), from.data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 3 * bytes);
}

/// `bytes` are those of the f32 side.
void cast(benchmark::State& state, DType from, DType to) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / size_of(DType::f32);
  const auto in = ones(from, count * size_of(from));
  std::vector<std::byte> out(count * size_of(to));
  for (auto _ : state) {
    kernel::cast({from, to}, in.data(), out.data(), count);
    benchmark::ClobberMemory();
  }
  count_bytes(state, in.size() + out.size());
}

void norm(benchmark::State& state, DType dtype) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto in = ones(dtype, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(kernel::squared_norm(dtype, in.data(), bytes / size_of(dtype)));
  count_bytes(state, bytes);
}

void scale(benchmark::State& state, DType dtype) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto into = ones(dtype, bytes);
  for (auto _ : state) {
    kernel::scale(dtype, into.data(), bytes / size_of(dtype), 1.0);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * bytes);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t kib : {4, 32, 256, 1024, 65536}) benchmark->Arg(kib * 1024);
}

template <class... Arguments>
void add(const std::string& name, Arguments... arguments) {
  sizes(benchmark::RegisterBenchmark(name.c_str(), arguments...));
}

/// Filled before main by Google Benchmark's own convention.
const bool registered = [] {
  add("memcpy", copy);
  for (const DType dtype : kDTypes) {
    const std::string type(name_of(dtype));
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min})
      add("reduce/" + type + "/" + std::string(name_of(op)), reduce, kernel::Reduction{dtype, op});
    add("reduce/" + type + "/average_of_3", reduce, kernel::Reduction{dtype, ReduceOp::average, 3});
    add("reduce/" + type + "/average_of_4", reduce, kernel::Reduction{dtype, ReduceOp::average, 4});
    if (is_integer(dtype)) continue;
    add("norm/" + type, norm, dtype);
    add("scale/" + type, scale, dtype);
    if (dtype == DType::f32) continue;
    add("cast/f32/" + type, cast, DType::f32, dtype);
    add("cast/" + type + "/f32", cast, dtype, DType::f32);
  }
  return true;
}();

}  // namespace
}  // namespace syncopate
