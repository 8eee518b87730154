// The class Storage of the Python package: a descriptor whose functions are those of an object of Python.
#include "component/storage.hpp"

#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "component/lent.hpp"
#include "signals.hpp"
#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using server::BlockView;
using server::Storages;

constexpr const char* kDoc =
    "Storages of your own: what workers and servers keep of tables, and how updates and weights enter and leave it. "
    "Every worker and server has an equal one: pass it as `storage`, or in `catalogue` with storage=\"NAME:NUMBERS\", "
    "and to Server.start in `catalogue`.\n\n"
    "storage(*numbers): a class, or a function, that returns an object with some of these; the library does what it "
    "lacks. Values are flat arrays of float32 that belong to the library: write all of the last one in place, and keep "
    "none. block: a BlockView.\n"
    "- accumulate(block, update, accumulated): a worker adds a step's update to those that it has not sent.\n"
    "- combine(block, updates, combined): a server combines the updates of a step's workers, a list; without lockstep "
    "one.\n"
    "- apply(block, combined, rate, kept, weights): a server changes the weights. kept: as many floats per element as "
    "the object's attribute `kept`, 0 at first, for the next call.\n"
    "- answer(block, weights, shown): a server makes what workers get instead of the weights.\n"
    "- adopt(block, arrived, weights): a worker changes its weights by those that have arrived.\n"
    "- load(memory, values) and store(values, memory): a worker reads and writes the object that `create_table` or "
    "`update` got, which may be any with a `shape`, for example a tensor on a device.\n"
    "parameters: the numbers after the colon of its name, by default those of the Parameters; they are floats.\n\n"
    "Equal arguments give equal results on every process, and nothing but `kept` is remembered between calls: "
    "syncopate.testing.check_storage. Raises Misuse for a name that is not made of a-z, 0-9 and _. An exception of a "
    "function is raised by the worker's call; on a server it ends the job.";

/// Calls a function of the object with arrays, which it returns all.
template <class... Arguments>
auto caller(const PythonStorage& storage, const char* name, nb::object function) {
  return [&storage, name, hook = held(std::move(function))](auto&&... arguments) {
    with_gil(storage.who(), [&] {
      const Lent lent;
      const auto given = [&](auto&& argument) {
        if constexpr (requires { lent.over(argument); })
          return lent.over(argument);
        else if constexpr (requires { argument.front().front(); }) {
          nb::list all;
          for (const auto& one : argument) all.append(lent.over(one));
          return all;
        } else if constexpr (requires { argument.dtype; })
          return nb::borrow(static_cast<PyObject*>(argument.data));
        else
          return nb::cast(argument);
      };
      (*hook)(given(arguments)...);
      lent.require_returned(storage, name);
    });
  };
}

Storages storages(const void* self, std::span<const double> numbers) {
  const PythonStorage& storage = *static_cast<const PythonStorage*>(self);
  return with_gil(storage.who(), [&] {
    const nb::object made = storage.maker()(*nb::tuple(nb::cast(std::vector<double>(numbers.begin(), numbers.end()))));
    Storages own;
    const auto set = [&](auto& function, const char* name) {
      if (nb::hasattr(made, name)) function = caller(storage, name, made.attr(name));
    };
    set(own.accumulate, "accumulate");
    set(own.combine, "combine");
    set(own.apply, "apply");
    set(own.answer, "answer");
    set(own.adopt, "adopt");
    set(own.load, "load");
    set(own.store, "store");
    if (nb::hasattr(made, "kept"))
      own.kept = value_of<std::size_t>(storage, "kept", made.attr("kept"), "a whole number of at least 0");
    storage.note_loads(static_cast<bool>(own.load));
    return own;
  });
}

}  // namespace

PythonStorage::PythonStorage(std::string own_name, nb::object maker, std::vector<ComponentParameter> numbers)
    : Component("storage", std::move(own_name), {std::move(maker)}), parameters_(std::move(numbers)) {
  static_cast<server::Storage&>(*this) = {.name = this->own_name(),
                                          .summary = "storages of this program",
                                          .source = "Python",
                                          .parameter = parameters_.usual(),
                                          .parameters = parameters_.limits(),
                                          .storages = {bind::storages, this}};
  static_cast<void>(Catalogue().with(*this));  // its name and its parameters
}

void bind_storage(nb::module_& module) {
  nb::class_<BlockView>(module, "BlockView", "A part of one table on one server, whose values a storage gets.")
      .def_ro("table", &BlockView::table, "Its index, in the order of creation.")
      .def_prop_ro(
          "begin", [](const BlockView& self) { return self.elements.begin; }, "First element of the table.")
      .def_prop_ro(
          "end", [](const BlockView& self) { return self.elements.end; }, "Behind the last one.");
  nb::class_<PythonStorage>(module, "Storage", nb::type_slots(component_slots<PythonStorage>),
                            nb::is_weak_referenceable(), kDoc)
      .def(
          "__init__",
          [](PythonStorage* self, const std::string& name, const nb::callable& storage,
             const std::vector<ComponentParameter>& parameters) {
            new (self) PythonStorage(name, storage, parameters);
          },
          "name"_a, "storage"_a, nb::kw_only(), "parameters"_a = std::vector<ComponentParameter>{},
          nb::sig("def __init__(self, name: str, storage: collections.abc.Callable[..., object], *, "
                  "parameters: collections.abc.Sequence[Parameter] = []) -> None"))
      .def_prop_ro("name", &PythonStorage::own_name)
      .def("__repr__", [](const PythonStorage& self) { return "Storage('" + self.own_name() + "')"; });
}

}  // namespace syncopate::bind
