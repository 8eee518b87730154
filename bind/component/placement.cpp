// The class Placement of the Python package: a descriptor whose functions call Python.
#include "component/placement.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using server::Demand;
using server::Shard;

constexpr const char* kDoc =
    "A placement of your own: it assigns the parts of tables to servers. Every worker and server has an equal one: "
    "pass it as `placement`, or in `catalogue` with its name, and to Server.start in `catalogue`.\n\n"
    "place(table_bytes, servers, grain_bytes): the shards (table, begin, end, server), by table, then by range: the "
    "bytes begin to end of a table, which one server keeps. Each byte is in one shard, none is empty, and begin is a "
    "multiple of grain_bytes. Every process calls it and must get the same.\n"
    "most_bytes(table_bytes, servers, grain_bytes): no server keeps more bytes than this, which "
    "syncopate.testing.check_placement checks; by default those of all tables.\n\n"
    "Raises Misuse for a name that is not made of a-z, 0-9 and _. An exception of the functions is raised by "
    "TableWorker.start; on a server it ends the job.";

const PythonPlacement& own(const void* self) { return *static_cast<const PythonPlacement*>(self); }

nb::object called(const nb::object& function, const Demand& demand) {
  const std::vector<std::size_t> tables(demand.table_bytes.begin(), demand.table_bytes.end());
  return function(tables, demand.servers, demand.grain_bytes);
}

std::vector<Shard> place(const void* self, const Demand& demand) {
  const PythonPlacement& placement = own(self);
  return with_gil(placement.who(), [&] {
    const nb::list returned(called(placement.functions()[0], demand));
    std::vector<Shard> shards;
    for (const nb::handle each : returned) {
      const auto [table, begin, end, server] = value_of<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>>(
          placement, "a shard", nb::borrow(each), "(table, begin, end, server), whole numbers of at least 0");
      shards.push_back({table, begin, end, server});
    }
    return shards;
  });
}

double most_bytes(const void* self, const Demand& demand) {
  const PythonPlacement& placement = own(self);
  const nb::object& function = placement.functions()[1];
  if (function.is_none()) return std::accumulate(demand.table_bytes.begin(), demand.table_bytes.end(), 0.0);
  return with_gil(placement.who(),
                  [&] { return value_of<double>(placement, "most_bytes", called(function, demand), "a number"); });
}

}  // namespace

PythonPlacement::PythonPlacement(std::string own_name, nb::object shards, nb::object most)
    : Component("placement", std::move(own_name), {std::move(shards), std::move(most)}) {
  static_cast<server::Placement&>(*this) = {.name = this->own_name(),
                                            .summary = "a placement of this program",
                                            .source = "Python",
                                            .place = {bind::place, this},
                                            .most_bytes = {bind::most_bytes, this}};
  static_cast<void>(Catalogue().with(*this));  // its name
}

void bind_placement(nb::module_& module) {
  nb::class_<PythonPlacement>(module, "Placement", nb::type_slots(component_slots<PythonPlacement>),
                              nb::is_weak_referenceable(), kDoc)
      .def(
          "__init__",
          [](PythonPlacement* self, const std::string& name, const nb::callable& place, const nb::object& most_bytes) {
            new (self) PythonPlacement(name, place, most_bytes);
          },
          "name"_a, "place"_a, nb::kw_only(), "most_bytes"_a = nb::none(),
          nb::sig("def __init__(self, name: str, place: collections.abc.Callable[[list[int], int, int], "
                  "collections.abc.Iterable[tuple[int, int, int, int]]], *, "
                  "most_bytes: collections.abc.Callable[[list[int], int, int], float] | None = None) -> None"))
      .def_prop_ro("name", &PythonPlacement::own_name)
      .def("__repr__", [](const PythonPlacement& self) { return "Placement('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
