// Waiting for started operations, and their callbacks, which run on the group's thread with the GIL.
#include "work.hpp"

#include <nanobind/stl/string.h>

#include <stdexcept>

#include "error.hpp"
#include "signals.hpp"

namespace syncopate::bind {

namespace {

/// Calls back, and lets the callback go: with it may go the last reference to the group.
void call(nb::callable& callback, std::atomic<std::thread::id>& calling, const std::exception_ptr& error) {
  if (!nb::is_alive()) return;
  const nb::gil_scoped_acquire acquire;
  std::string failure;
  calling = std::this_thread::get_id();
  try {
    callback(exception_object(error));
  } catch (const nb::python_error& raised) {
    failure = raised.what();
  }
  callback.reset();
  calling = std::thread::id();
  // A Python exception must not pass through threads without the GIL.
  if (!failure.empty()) throw std::runtime_error(failure);
}

constexpr const char* kDoc =
    "An operation in progress, from Group.start, start_send or start_recv.\n\n"
    "Its arrays must stay unchanged until it has ended; they are kept alive. `await work` waits in an asyncio program "
    "without a thread.";

}  // namespace

StartedWork::StartedWork(Work work, Origin origin, std::vector<Array> arrays)
    : work_(std::move(work)), origin_(std::move(origin)), arrays_(std::move(arrays)) {}

StartedWork::~StartedWork() {
  if (arrays_.empty() || work_.ready()) return;
  const auto kept = held(std::move(arrays_));
  const nb::gil_scoped_release release;
  work_.then([kept](const std::exception_ptr&) {});
}

void StartedWork::wait_until_over(const std::function<bool(std::chrono::milliseconds)>& is_over) const try {
  wait_in_pieces(is_over);
} catch (const nb::python_error&) {
  if (const auto group = origin_.group.lock())
    group->abort("its program was interrupted while it waited for an operation");
  throw;
}

void StartedWork::wait() const {
  wait_until_over([&](std::chrono::milliseconds bound) { return work_.wait_for(bound); });
}

bool StartedWork::wait_for(double bound_s) const {
  using Seconds = std::chrono::duration<double>;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(std::clamp(bound_s, 0.0, 1e9)));
  bool ended = false;
  wait_until_over([&](std::chrono::milliseconds bound) {
    const auto left = end - std::chrono::steady_clock::now();
    ended = work_.wait_for(std::min<std::chrono::nanoseconds>(bound, left));
    return ended || left <= bound;
  });
  return ended;
}

void StartedWork::then(nb::callable callback) const {
  const auto kept = held(std::move(callback));
  const nb::gil_scoped_release release;
  work_.then([kept, calling = origin_.calling](const std::exception_ptr& error) { call(*kept, *calling, error); });
}

void bind_work(nb::module_& module) {
  nb::class_<StartedWork>(module, "Work", kDoc)
      .def("wait", &StartedWork::wait,
           "Return when the operation has ended; raise what it failed with. Ctrl-C ends the wait and aborts the group.")
      .def("wait_for", &StartedWork::wait_for, nb::arg("bound_s"),
           "As wait, for `bound_s` seconds at most. Return whether the operation has ended.")
      .def("ready", &StartedWork::ready, "Whether the operation has ended, well or not.")
      .def("then", &StartedWork::then, nb::arg("callback"),
           nb::sig("def then(self, callback: collections.abc.Callable[[BaseException | None], object]) -> None"),
           "Call `callback(error)` when the operation has ended; `error` is None if it ended well. It runs on the "
           "group's thread, or at once if the operation has ended. It may start operations of the group but must not "
           "wait for them; what it raises aborts the group.")
      .def(
          "__await__", [](nb::handle self) { return nb::module_::import_("syncopate.awaiting").attr("steps")(self); },
          nb::sig("def __await__(self) -> collections.abc.Generator[object, None, None]"));
}

}  // namespace syncopate::bind
