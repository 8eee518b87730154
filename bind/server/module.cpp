// The module syncopate._server: servers and workers of a parameter-server job, which need gRPC.
#include "parts.hpp"

// NOLINTNEXTLINE: the macro defines the function that Python looks for
NB_MODULE(_server, module) {
  using namespace syncopate;
  nanobind::set_leak_warnings(false);  // as in syncopate._core, whose exception classes this module raises
  nanobind::module_::import_("syncopate._core");
  module.attr("__doc__") = "The parameter server of the C++ library, as `import syncopate` offers it.";
  bind::bind_access(module);
  bind::bind_kept(module);
  bind::bind_server(module);
  bind::bind_worker(module);
}
