// Credentials of a parameter-server job: its name, secret and certificates.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "parts.hpp"
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
      "owner; not needed if only this host can connect. authority, certificate, key: PEM files for TLS, required if "
      "other hosts can connect. silence_s: the other end of a stream is lost if nothing arrives from it for this long; "
      "at least 0.1.")
      .def(
          "__init__",
          [](JobAccess* self, const std::string& job, const std::string& secret_file, const std::string& authority,
             const std::string& certificate, const std::string& key, double silence) {
            new (self) JobAccess{job, secret_file, authority, certificate, key, *milliseconds(silence, "silence_s")};
          },
          nb::kw_only(), "job"_a = usual.job, "secret_file"_a = "", "authority"_a = "", "certificate"_a = "",
          "key"_a = "", "silence_s"_a = silence_s(usual))
      .def_ro("job", &JobAccess::job)
      .def_ro("secret_file", &JobAccess::secret_file)
      .def_ro("authority", &JobAccess::authority)
      .def_ro("certificate", &JobAccess::certificate)
      .def_ro("key", &JobAccess::key)
      .def_prop_ro("silence_s", silence_s);
  module.def("access_from_environment", access_from_environment,
             "Read SYNCOPATE_JOB, _SECRET_FILE, _TLS_AUTHORITY, _TLS_CERTIFICATE, _TLS_KEY and _SILENCE_MS, which "
             "`syncopate run --servers` sets.");
  module.def(
      "make_certificates",
      [](const std::string& folder, const nb::typed<nb::dict, std::string, std::vector<std::string>>& hosts, int days) {
        std::vector<CertifiedHost> certified;
        for (const auto& [name, called] : hosts)
          certified.push_back({nb::cast<std::string>(name), nb::cast<std::vector<std::string>>(called)});
        make_certificates(folder, certified, days);
      },
      "folder"_a, "hosts"_a, "days"_a = 30,
      "Create `folder`, accessible only by its owner, and in it `authority.pem` and for each host `NAME.pem` and "
      "`NAME-key.pem`. hosts: for each name, the names and numeric addresses by which others reach that host. Raises "
      "Misuse, SystemFailure.");
}

}  // namespace syncopate::bind
