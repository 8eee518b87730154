// The module syncopate._core: what the Python package takes from the C++ library.
#include "bind.hpp"
#include "syncopate/version.hpp"

// NOLINTNEXTLINE: the macro defines the function that Python looks for
NB_MODULE(_core, module) {
  using namespace syncopate;
  nanobind::set_leak_warnings(false);  // other frameworks keep what they were given until the interpreter has ended
  module.attr("__doc__") = "The C++ library, as `import syncopate` offers it.";
  module.attr("__version__") = nanobind::str(version().data(), version().size());
  bind::bind_errors(module);
  bind::bind_thrown();
  bind::bind_work(module);
  bind::bind_group(module);
  bind::bind_coding(module);
  bind::bind_conversation(module);
  bind::bind_parameter(module);
  bind::bind_codec(module);
  bind::bind_placement(module);
  bind::bind_consistency(module);
  bind::bind_storage(module);
  bind::bind_policy(module);
  bind::bind_rule(module);
  bind::bind_testing(module);
  bind::bind_optimizer(module);
  bind::bind_shared_work(module);
  bind::bind_synchronizer(module);
  bind::bind_combiner(module);
  bind::bind_foresight(module);
  bind::bind_records(module);
  bind::bind_source(module);
  bind::bind_cache(module);
  bind::bind_picture(module);
  bind::bind_access(module);
  bind::bind_kept(module);
  bind::bind_server(module);
  bind::bind_worker(module);
}
