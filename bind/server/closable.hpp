// An object of the library that needs no GIL to end: it stays until `close` and the calls in progress have ended.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

/// The object with the arrays that it uses.
template <class T>
struct Used {
  std::unique_ptr<T> object;
  std::vector<Array> arrays{};
  std::shared_ptr<std::vector<nb::object>> entries{};  ///< components of the catalogue
  bool is_called = false;                              ///< by a thread, for objects that one thread at a time uses
  Used(std::unique_ptr<T> made, std::shared_ptr<std::vector<nb::object>> components)
      : object(std::move(made)), entries(std::move(components)) {}
  Used(const Used&) = delete;
  Used& operator=(const Used&) = delete;
  /// Its threads end without the GIL; then the arrays are released with it.
  ~Used() {
    const nb::gil_scoped_release release;
    object.reset();
  }
};

/// The part that Python holds. Used with the GIL.
template <class T>
class Closable {
 public:
  Closable(std::unique_ptr<T> object, std::shared_ptr<std::vector<nb::object>> components, const char* name)
      : own_(std::make_shared<Used<T>>(std::move(object), std::move(components))), name_(name) {}

  /// Throws Misuse after `close`.
  [[nodiscard]] std::shared_ptr<Used<T>> own() const {
    if (own_) return own_;
    throw Misuse(std::string("this ") + name_ + " was closed; make another one");
  }
  [[nodiscard]] bool is_closed() const noexcept { return !own_; }
  void close() { own_.reset(); }

 private:
  std::shared_ptr<Used<T>> own_;
  const char* name_;
};

/// `close`, `closed`, and the methods of a context manager.
template <class Type>
void define_closing(nb::class_<Type>& type, const char* doc) {
  type.def("close", &Type::close, doc)
      .def_prop_ro("closed", &Type::is_closed, "Whether `close` was called.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __enter__(self) -> typing_extensions.Self"))
      .def(
          "__exit__", [](Type& self, nb::handle, nb::handle, nb::handle) { self.close(); }, nb::arg().none(),
          nb::arg().none(), nb::arg().none(),
          nb::sig("def __exit__(self, kind: object, error: object, trace: object) -> None"));
}

}  // namespace syncopate::bind
