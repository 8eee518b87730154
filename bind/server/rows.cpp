// Tables of rows in Python: ids, rows and gradients are arrays of any framework, in place.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "bind.hpp"
#include "server/working.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using Read = nb::ndarray<nb::ro>;

void require_type(const nb::dlpack::dtype& type, bool is_right, const char* what, const char* allowed) {
  if (type.lanes != 1 || !is_right)
    throw Misuse(
        fmt::format("{} have elements of {} bits of DLPack type {}; allowed: {}", what, type.bits, type.code, allowed));
}

/// Int64 is read as its bits, so that -1 is the largest id.
std::span<const std::uint64_t> ids_in(const Read& array) {
  const auto type = array.dtype();
  const bool is_whole = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int) ||
                        type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt);
  require_type(type, is_whole && type.bits == 64, "ids", "int64, uint64");
  return {static_cast<const std::uint64_t*>(array.data()), array.size()};
}

std::span<const float> gradients_in(const Read& array) {
  const auto type = array.dtype();
  const bool is_float = type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float);
  require_type(type, is_float && type.bits == 32, "gradients", "float32");
  return {static_cast<const float*>(array.data()), array.size()};
}

std::size_t create(const Working& self, const std::string& name, std::size_t width, const std::string& rule,
                   const nb::typed<nb::dict, std::string, double>& hyperparameters, std::uint64_t seed, double scale) {
  RowOptions options{.name = name, .width = width, .rule = rule, .hyperparameters = {}, .seed = seed, .scale = scale};
  for (const auto& [key, value] : hyperparameters)
    options.hyperparameters.emplace_back(nb::cast<std::string>(key), nb::cast<double>(value));
  return self.call([&](TableWorker& worker) { return worker.create_rows(options); });
}

void pull(const Working& self, std::size_t table, nb::handle ids, nb::handle out) {
  const Read named = read_array_of(ids, "ids");
  const Array rows = array_of(out, {}, "out");
  if (rows.buffer.dtype != DType::f32)
    throw Misuse("out has elements of " + std::string(name_of(rows.buffer.dtype)) + "; allowed: f32");
  const auto own = ids_in(named);
  const std::span<float> into(static_cast<float*>(rows.buffer.data), rows.buffer.count);
  self.call([&](TableWorker& worker) { worker.pull_rows(table, own, into); });
}

void push(const Working& self, std::size_t table, nb::handle ids, nb::handle gradients, double rate) {
  const Read named = read_array_of(ids, "ids"), rows = read_array_of(gradients, "gradients");
  const auto own = ids_in(named);
  const auto values = gradients_in(rows);
  self.call([&](TableWorker& worker) { worker.push_rows(table, own, values, rate); });
}

void visit(const Working& self, std::size_t table, const std::optional<nb::callable>& take) {
  std::function<void(const KeptRows&)> taken;
  if (take)
    taken = [&](const KeptRows& rows) {
      const nb::gil_scoped_acquire acquired;
      (*take)(nb::cast(rows, nb::rv_policy::copy));
    };
  self.call([&](TableWorker& worker) { worker.visit_rows(table, taken); });
}

}  // namespace

void define_rows(nb::class_<Working>& type) {
  const RowOptions usual;
  type.def(
          "create_rows", create, "name"_a, "width"_a, nb::kw_only(), "rule"_a = usual.rule,
          "hyperparameters"_a = nb::dict(), "seed"_a = usual.seed, "scale"_a = usual.scale,
          "Create a table of rows of `width` float32, addressed by 64-bit ids and divided among the servers by id, and "
          "return its index (these tables are counted apart). Every worker creates the same ones in the same order. A "
          "row's first values follow from seed, table and id: uniform in [-scale, scale). rule: a name from `syncopate "
          "info optimizer`, not layer-wise; every row has its own state. hyperparameters: of the rule, by name; "
          "weight_decay is 0 unless given. Raises Misuse after `start`.")
      .def(
          "pull_rows", pull, "table"_a, "ids"_a, "out"_a,
          "Wait for the rows of these ids (int64 or uint64), and write them to `out`, an array of float32 with `width` "
          "elements for each id. They contain all this worker's pushes so far. Raises Misuse for other lengths or "
          "types, PeerLost, Timeout.")
      .def(
          "push_rows", push, "table"_a, "ids"_a, "gradients"_a, "rate"_a,
          "For each id, one step of the table's rule with the sum of the id's gradients, on the server and on arrival: "
          "N workers that push a row make N steps of it. Every push is applied once. Returns when the gradients are "
          "copied. Raises Misuse as `pull_rows`; if a server lacks memory for more rows, in this or a later call.")
      .def(
          "visit_rows", visit, "table"_a, "take"_a = nb::none(),
          "Call `take` with all rows of the table that were ever pushed, once each, in parts (KeptRows) of at most 256 "
          "KiB or one row. Every worker calls it at the same point of its program, those that do not need the rows "
          "without `take`: the rows are those after all workers' calls of `push_rows` before it, and each call returns "
          "when all visits have ended. Raises Misuse as `pull_rows`, PeerLost, Timeout, and what `take` raises; a call "
          "that raises counts as made.")
      .def(
          "restore_rows",
          [](const Working& self, std::size_t table, const KeptRows& rows) {
            self.call([&](TableWorker& worker) { worker.restore_rows(table, rows); });
          },
          "table"_a, "rows"_a,
          "Load rows from `visit_rows`, also in a job with another number of workers or servers. The servers leave a "
          "row that they have as it is: every worker calls it for all rows, after `start` and before it pulls or "
          "pushes. Raises Misuse for rows of another rule or lengths that do not fit.");
}

}  // namespace syncopate::bind
