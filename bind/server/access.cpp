// Credentials of a parameter-server job: its name, its secret, and encryption.
#include <nanobind/stl/string.h>

#include "bind.hpp"
#include "seconds.hpp"
#include "syncopate/server.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

double silence_s(const JobAccess& self) { return std::chrono::duration<double>(self.silence).count(); }

}  // namespace

void bind_access(nb::module_& module) {
  const JobAccess usual;
  nb::class_<JobAccess>(
      module, "JobAccess",
      "Credentials by which the processes of a job authenticate each other.\n\n"
      "job: the job's name, equal in all its processes. secret_file: file with the job's secret, readable only by its "
      "owner; not needed if only this host can connect. tls: \"on\", \"off\", or \"auto\", which encrypts connections "
      "to public addresses; equal in all processes. silence_s: the other end of a stream is lost if nothing arrives "
      "from it for this long; "
      "at least 0.1.")
      .def(
          "__init__",
          [](JobAccess* self, const std::string& job, const std::string& secret_file, const std::string& tls,
             double silence) {
            new (self) JobAccess{job, secret_file, tls_named(tls), *milliseconds(silence, "silence_s")};
          },
          nb::kw_only(), "job"_a = usual.job, "secret_file"_a = "", "tls"_a = std::string(name_of(usual.tls)),
          "silence_s"_a = silence_s(usual))
      .def_ro("job", &JobAccess::job)
      .def_ro("secret_file", &JobAccess::secret_file)
      .def_prop_ro("tls", [](const JobAccess& self) { return std::string(name_of(self.tls)); })
      .def_prop_ro("silence_s", silence_s);
  module.def("access_from_environment", access_from_environment,
             "Read SYNCOPATE_JOB, _SECRET_FILE, _TLS and _SILENCE_MS, which `syncopate run --servers` sets.");
}

}  // namespace syncopate::bind
