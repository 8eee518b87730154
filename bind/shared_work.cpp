// The class SharedWork for Python: a function of tensors, in Python, whose evaluations the ranks of a group divide.
#include "syncopate/shared_work.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "array.hpp"
#include "group.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using Function = nb::typed<nb::callable, nb::object(std::size_t)>;

constexpr const char* kDoc =
    "Divides a function of tensors among the ranks of a group: each rank computes the results of its own tensors, and "
    "every rank gets those of all (the parallel tensor operator of CommLib). They have the bits of a rank that "
    "computes all, if every rank has the same tensors.\n\n"
    "work: of each tensor, for example its elements, as ints; no rank has more than an even share and one tensor. "
    "results: values per tensor. name: appears in errors. All ranks make it together, with equal arguments. It is "
    "faster than undivided work if the work that a rank saves takes longer than one small all-gather.\n\n"
    "Raises Misuse, and Mismatch on every rank if arguments differ.";

constexpr const char* kRunDoc =
    "A collective: call `function(tensor)` for the indices of this rank's tensors, in ascending order, and return an "
    "array of float64 with a row of results for every tensor (`numpy.from_dlpack`, `torch.from_dlpack`). The function "
    "returns a number, if there is one result, or `results` numbers: a tuple, list, array or tensor. It must not use "
    "the group. An exception of it is raised here and aborts the group: the other ranks raise RemoteFailure.";

/// The numbers that the function returned. A single one, also an array without dimensions, has no length.
std::vector<double> numbers_in(const nb::object& returned) {
  const auto number = [](nb::handle value) { return nb::cast<double>(nb::float_(value)); };
  if (PyObject_Size(returned.ptr()) < 0) {
    PyErr_Clear();
    return {number(returned)};
  }
  std::vector<double> numbers;
  for (const nb::handle value : nb::iter(returned)) numbers.push_back(number(value));
  return numbers;
}

void write(const nb::object& returned, std::size_t tensor, std::span<double> results) {
  const std::vector<double> numbers = numbers_in(returned);
  if (numbers.size() != results.size())
    throw Misuse(fmt::format("the function returned {} numbers for tensor {}; allowed: {}", numbers.size(), tensor,
                             results.size()));
  std::ranges::copy(numbers, results.begin());
}

/// It does not keep the group joined.
class Dividing final {
 public:
  Dividing(const Membership& membership, const std::vector<std::size_t>& work, std::size_t results,
           const std::string& name)
      : joined_(membership.group()), signals_(membership.signals()) {
    const auto group = joined_.lock();
    signals_->without_gil([&] { own_.emplace(*group, work, results, name); });
  }

  [[nodiscard]] OwnArray run(const Function& function) const {
    const std::shared_ptr<Group> group = joined_.lock();
    if (!group) throw Misuse("the group of this shared work was closed; make another one");
    auto results = std::make_shared<std::vector<double>>(signals_->without_gil([&] {
      return own_->run([&](std::size_t tensor, std::span<double> values) {
        with_gil("the function", [&] { write(function(tensor), tensor, values); });
      });
    }));
    double* const data = results->data();
    return array_over(data, {{own().items(), own_->results()}, DType::f64}, owner_of(std::move(results)));
  }

  [[nodiscard]] const WorkDivision& own() const { return own_->division(); }

 private:
  std::weak_ptr<Group> joined_;
  std::shared_ptr<Signals> signals_;
  std::optional<SharedWork> own_;  ///< used while the group is locked
};

}  // namespace

void bind_shared_work(nb::module_& module) {
  nb::class_<Dividing>(module, "SharedWork", kDoc)
      .def(nb::init<const Membership&, const std::vector<std::size_t>&, std::size_t, const std::string&>(), "group"_a,
           "work"_a, "results"_a = 1, nb::kw_only(), "name"_a = "shared work")
      .def("run", &Dividing::run, "function"_a, kRunDoc)
      .def(
          "tensors",
          [](const Dividing& self, int rank) {
            const auto own = self.own().of(rank);
            return std::vector<std::size_t>(own.begin(), own.end());
          },
          "rank"_a, "The indices of the tensors of a rank, in ascending order.");
}

}  // namespace syncopate::bind
