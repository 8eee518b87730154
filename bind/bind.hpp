// The parts of the module syncopate._core: each file of this folder adds one of them.
#pragma once

#include <nanobind/nanobind.h>

namespace syncopate::bind {

namespace nb = nanobind;

void bind_cache(nb::module_& module);
void bind_errors(nb::module_& module);
void bind_foresight(nb::module_& module);
void bind_thrown();
void bind_work(nb::module_& module);
void bind_group(nb::module_& module);
void bind_coding(nb::module_& module);
void bind_codec(nb::module_& module);
void bind_conversation(nb::module_& module);
void bind_combiner(nb::module_& module);
void bind_optimizer(nb::module_& module);
void bind_picture(nb::module_& module);
void bind_records(nb::module_& module);
void bind_shared_work(nb::module_& module);
void bind_source(nb::module_& module);
void bind_synchronizer(nb::module_& module);
// Components of a program's own, in component/.
void bind_parameter(nb::module_& module);
void bind_placement(nb::module_& module);
void bind_consistency(nb::module_& module);
void bind_storage(nb::module_& module);
void bind_policy(nb::module_& module);
void bind_rule(nb::module_& module);
void bind_testing(nb::module_& module);
// The parameter server, in server/.
void bind_access(nb::module_& module);
void bind_kept(nb::module_& module);
void bind_server(nb::module_& module);
void bind_worker(nb::module_& module);

}  // namespace syncopate::bind
