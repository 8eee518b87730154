// Call policies for what makes a resource, such as a group: it is closed before the interpreter ends.
#pragma once

#include "bind.hpp"

namespace syncopate::bind {

struct Remembered {
  static void precall(PyObject** /*arguments*/, std::size_t /*count*/, nb::detail::cleanup_list* /*cleanup*/) {}
  static void postcall(PyObject** /*arguments*/, std::size_t /*count*/, nb::handle made) {
    nb::module_::import_("syncopate.ending").attr("remember")(made);
  }
};

struct RememberedNew {
  static void precall(PyObject** /*arguments*/, std::size_t /*count*/, nb::detail::cleanup_list* /*cleanup*/) {}
  static void postcall(PyObject** arguments, std::size_t /*count*/, nb::handle /*made*/) {
    nb::module_::import_("syncopate.ending").attr("remember")(nb::handle(arguments[0]));
  }
};

}  // namespace syncopate::bind
