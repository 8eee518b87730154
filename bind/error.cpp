// Exception classes, made from the library's table of error kinds, and the translation of what C++ throws.
#include "error.hpp"

#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

constexpr const char* kDoc =
    "Base of all errors of Syncopate.\n\n"
    "rank, peer: the rank that raises it and the rank that caused it; None where they do not apply.\n"
    "operation, tensor: the operation that failed and the name given to it; None where they do not apply.";

nb::object make_class(const char* name, nb::handle base, const nb::dict& members) {
  return nb::borrow(reinterpret_cast<PyObject*>(&PyType_Type))(name, nb::make_tuple(base), members);
}

nb::object rank_object(int rank) { return rank < 0 ? nb::none() : nb::object(nb::int_(rank)); }
nb::object text_object(const std::string& text) {
  return text.empty() ? nb::none() : nb::object(nb::str(text.data(), text.size()));
}

nb::object object_of(const Error& error) {
  const std::string_view name = name_of(error.kind());
  const nb::object type = nb::module_::import_("syncopate._core").attr(nb::str(name.data(), name.size()));
  nb::object raised = type(nb::str(error.what()));
  const Where& where = error.where();
  raised.attr("rank") = rank_object(where.rank);
  raised.attr("peer") = rank_object(where.peer);
  raised.attr("operation") = text_object(where.operation);
  raised.attr("tensor") = text_object(where.tensor);
  return raised;
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    const nb::object raised = object_of(error);
    PyErr_SetObject(raised.type().ptr(), raised.ptr());
  }
}

}  // namespace

nb::object exception_object(const std::exception_ptr& thrown) try {
  if (!thrown) return nb::none();
  std::rethrow_exception(thrown);
} catch (const Error& error) {
  return object_of(error);
} catch (const Thrown& error) {
  return error.object();
} catch (const std::exception& error) {
  return nb::borrow(PyExc_RuntimeError)(nb::str(error.what()));
}

void bind_errors(nb::module_& module) {
  nb::dict members;
  members["__doc__"] = kDoc;
  members["__module__"] = module.attr("__name__");
  for (const char* attribute : {"rank", "peer", "operation", "tensor"}) members[attribute] = nb::none();
  const nb::object base = make_class("Error", nb::handle(PyExc_RuntimeError), members);
  module.attr("Error") = base;
  for (const ErrorKind kind : kErrorKinds) {
    const std::string name(name_of(kind));
    nb::dict own;
    own["__doc__"] =
        nb::str(("The C++ exception syncopate::" + name + "; docs/errors.md describes when it is raised.").c_str());
    own["__module__"] = module.attr("__name__");
    module.attr(name.c_str()) = make_class(name.c_str(), base, own);
  }
  nb::register_exception_translator(translate, nullptr);
}

}  // namespace syncopate::bind
