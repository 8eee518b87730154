// Python exceptions that pass through threads of the library, and their translation back.
#include "thrown.hpp"

#include <fmt/format.h>

#include <optional>

#include "signals.hpp"

namespace syncopate::bind {

namespace {

thread_local bool keeps_interruption = false;
thread_local std::optional<Thrown> interruption;

std::string text_of(const std::string& who, const nb::python_error& error) {
  const auto name = nb::cast<std::string>(nb::str(error.type().attr("__name__")));
  return fmt::format("{}: {}: {}", who, name, nb::cast<std::string>(nb::str(error.value())));
}

}  // namespace

Thrown::Thrown(const std::string& who, const nb::python_error& error)
    : std::runtime_error(text_of(who, error)), raised_(held(nb::borrow(error.value()))) {
  if (keeps_interruption && !error.matches(PyExc_Exception)) interruption = *this;
  const nb::object traceback = nb::borrow(error.traceback());
  if (!traceback.is_valid()) return;
  PyException_SetTraceback(raised_->ptr(), traceback.ptr());
  nb::module_::import_("traceback").attr("clear_frames")(traceback);
}

Interruption::Interruption() noexcept { keeps_interruption = true; }

Interruption::~Interruption() {
  keeps_interruption = false;
  interruption.reset();
}

void Interruption::raise() const {
  if (interruption) throw Thrown(*interruption);
}

void Thrown::raise() const { PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised_->ptr())), raised_->ptr()); }

void bind_thrown() {
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* /*payload*/) {
        try {
          std::rethrow_exception(thrown);
        } catch (const Thrown& error) {
          error.raise();
        }
      },
      nullptr);
}

}  // namespace syncopate::bind
