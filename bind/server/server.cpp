// One server of a job, as an object of Python, and the status of servers of other processes.
#include "syncopate/server.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "component/catalogue.hpp"
#include "remembered.hpp"
#include "seconds.hpp"
#include "server/closable.hpp"
#include "signals.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "One server of a job, from Server.start. The first worker defines the tables; the others must define the same "
    "ones.\n\n"
    "It serves on threads of its own until `close`, which discards its data. Used as a context manager it is closed at "
    "the end. Thread-safe.";
constexpr const char* kStartDoc =
    "Start serving.\n\n"
    "addresses: \"host:port\" with a numeric host and port 0 for any free port, or \"@name\" for this host only. "
    "index: of this server; determines its part of the tables. memory_bytes: limit of the data it holds; 0: three "
    "quarters of the machine's memory. patience_s: a worker that is gone or silent for this long is given up. "
    "replicas: 1: the next server holds a replica, from which a new process of the same index recovers; needs "
    "`servers`, all addresses in the order of indices. snapshots: folder of snapshots, the same for all servers, "
    "written each time all workers have completed `snapshot_every` more steps. access: by default "
    "access_from_environment(). catalogue: the components of your own that the workers name.\n\n"
    "Raises Misuse (an invalid address or limit; no secret although other hosts can connect), SystemFailure (an "
    "address in use).";

/// Created, used and destroyed with the GIL.
class Serving final : public Closable<Server> {
 public:
  Serving(std::unique_ptr<Server> server, std::shared_ptr<std::vector<nb::object>> components)
      : Closable(std::move(server), std::move(components), "server") {}

  [[nodiscard]] bool wait_for_end(Seconds bound_s) const {
    const auto server = own();
    const auto start = std::chrono::steady_clock::now();
    const auto bound = milliseconds(bound_s, "bound_s");
    bool ended = false;
    wait_in_pieces([&](std::chrono::milliseconds piece) {
      const auto left =
          bound
              ? *bound - std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)
              : piece;
      ended = server->object->wait_for_end(std::max(std::chrono::milliseconds(0), std::min(piece, left)));
      return ended || left < piece;
    });
    return ended;
  }
};

Serving started(const ServerOptions& options, const CatalogueChosen& chosen) {
  return Serving(
      [&] {
        const nb::gil_scoped_release release;
        return Server::start(options);
      }(),
      chosen.entries());
}

void bind_status(nb::module_& module) {
  nb::class_<ServerStatus>(module, "ServerStatus", "The state of a server.")
      .def_ro("workers", &ServerStatus::workers, "Workers of the job; 0: none has connected yet.")
      .def_ro("connected", &ServerStatus::connected, "Workers with an open stream.")
      .def_ro("finished", &ServerStatus::finished, "Workers that have called TableWorker.finish.")
      .def_ro("kept_bytes", &ServerStatus::kept_bytes, "Weights.")
      .def_ro("replica_bytes", &ServerStatus::replica_bytes, "Weights of the predecessor's replica.")
      .def_ro("keeps_replica", &ServerStatus::keeps_replica, "The replica is complete.")
      .def_ro(
          "serves", &ServerStatus::serves,
          "It has its tables, restored from its replica if it replaces another process. A server may fail without a "
          "loss while it and all others serve and keep a replica.")
      .def_ro("received_bytes", &ServerStatus::received_bytes, "Message bodies.")
      .def_ro("sent_bytes", &ServerStatus::sent_bytes, "Message bodies.")
      .def_ro("processor_seconds", &ServerStatus::processor_seconds, "User and system time of its process so far.");
  module.def(
      "status_of",
      [](const std::string& address, const std::optional<JobAccess>& access) {
        return made_on_own_thread(
            [address, used = access ? *access : access_from_environment()] { return status_of(address, used); });
      },
      "address"_a, "access"_a = nb::none(),
      "Request the status of the server at `address`. Raises as TableWorker.connect does.");
}

}  // namespace

void bind_server(nb::module_& module) {
  bind_status(module);
  const ServerOptions usual;
  nb::class_<Serving> type(module, "Server", nb::is_weak_referenceable(), kDoc);
  type.def_static(
      "start",
      [](const std::vector<std::string>& addresses, std::size_t index, std::size_t memory_bytes, double patience_s,
         int replicas, const std::vector<std::string>& servers, const std::string& snapshots,
         std::int64_t snapshot_every, const std::optional<JobAccess>& access, const CatalogueGiven& catalogue) {
        const CatalogueChosen chosen(catalogue);
        const ServerOptions options{.addresses = addresses,
                                    .index = index,
                                    .memory_bytes = memory_bytes,
                                    .patience = *milliseconds(patience_s, "patience_s"),
                                    .replicas = replicas,
                                    .servers = servers,
                                    .snapshots = snapshots,
                                    .snapshot_every = snapshot_every,
                                    .catalogue = chosen.catalogue(),
                                    .access = access ? *access : access_from_environment()};
        return started(options, chosen);
      },
      "addresses"_a, nb::kw_only(), "index"_a = usual.index, "memory_bytes"_a = usual.memory_bytes,
      "patience_s"_a = std::chrono::duration<double>(usual.patience).count(), "replicas"_a = usual.replicas,
      "servers"_a = usual.servers, "snapshots"_a = usual.snapshots, "snapshot_every"_a = usual.snapshot_every,
      "access"_a = nb::none(), "catalogue"_a = CatalogueGiven{}, nb::call_policy<Remembered>(), kStartDoc);
  type.def_static(
      "start_from_environment",
      [](const CatalogueGiven& catalogue) -> std::optional<Serving> {
        auto options = server_from_environment();
        if (!options) return std::nullopt;
        const CatalogueChosen chosen(catalogue);
        options->catalogue = chosen.catalogue();
        return started(*options, chosen);
      },
      nb::kw_only(), "catalogue"_a = CatalogueGiven{}, nb::call_policy<Remembered>(),
      "Start the server that `syncopate run --servers K --own-servers` made of this process; None: it made a worker of "
      "it. syncopate.serve also waits and ends the process. Raises as `start` does.");
  type.def_prop_ro(
          "addresses", [](const Serving& self) { return self.own()->object->addresses(); },
          "Those of `start`, with the chosen ports.")
      .def(
          "status",
          [](const Serving& self) {
            const auto server = self.own();
            const nb::gil_scoped_release release;  // a component may need the GIL under a table's lock
            return server->object->status();
          },
          "Its state.")
      .def("wait_for_end", &Serving::wait_for_end, "bound_s"_a = nb::none(),
           "Wait, for at most `bound_s` seconds, until every worker of the job has finished or was given up; return "
           "whether they have. If serving ended with an error, raise it: Mismatch (another process has taken this "
           "server's place), Unauthorized, or what a component of the catalogue raised.");
  define_closing(type, "Stop serving and discard the data.");
}

}  // namespace syncopate::bind
