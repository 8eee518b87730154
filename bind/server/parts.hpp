// The parts of the module syncopate._server: each file of this folder adds one of them.
#pragma once

#include "bind.hpp"

namespace syncopate::bind {

void bind_access(nb::module_& module);
void bind_kept(nb::module_& module);
void bind_server(nb::module_& module);
void bind_worker(nb::module_& module);

}  // namespace syncopate::bind
