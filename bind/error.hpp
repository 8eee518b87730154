// The library's errors as Python exceptions: one class for each kind.
#pragma once

#include <exception>

#include "bind.hpp"

namespace syncopate::bind {

/// The Python exception for what an operation threw; None for null. Needs the GIL.
[[nodiscard]] nb::object exception_object(const std::exception_ptr& thrown);

}  // namespace syncopate::bind
