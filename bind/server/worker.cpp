// One worker of a parameter-server job, as an object of Python: its tables are arrays of any framework, in place.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "coding.hpp"
#include "component/catalogue.hpp"
#include "remembered.hpp"
#include "seconds.hpp"
#include "server/working.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "One worker of a parameter-server job, and its copies of the tables, from TableWorker.connect. A worker at clock c "
    "has completed c steps:\n\n"
    "    for each table, front to back: sync(table), forward\n"
    "    for each table, back to front: backward, update(table, gradient, rate)\n"
    "    clock(rate)\n\n"
    "Under a model with staleness s a step computes with the updates of all workers' first c - s steps and with all "
    "its own. A failure is raised by the call that detects it and by all later calls. Used by one thread at a time. "
    "Ctrl-C ends a wait; afterwards the same call may be repeated. Used as a context manager it is closed at the end, "
    "without `finish`.";
constexpr const char* kConnectDoc =
    "Connect to every server of the job.\n\n"
    "servers: all addresses in the order of indices; worker: of workers. Without servers all three come from "
    "SYNCOPATE_SERVERS, _RANK and _SIZE, which `syncopate run --servers` sets, and the timeout from _TIMEOUT_MS. "
    "placement, consistency, codec, answers, optimizer: names from `syncopate info`, with their parameters "
    "(\"ssp:3\"), or components of your own; catalogue: those that a name with a parameter means. codec codes the "
    "updates, answers the servers' answers. flow: the order in which updates and weights travel; front_first, "
    "wait_free, or traditional: all updates leave in `clock`, and a step's first `sync` waits for all tables. "
    "feedback: its kind, or a Feedback, whose gradients are those of tables; "
    "with \"momentum\" the optimizer's momentum is accumulated before the codec selects. Small tables are "
    "not coded. hyperparameters: of the optimizer, by "
    "name. timeout_s: how long servers may be unreachable before a call raises PeerLost, and how long a "
    "call waits for their answers (120). access: by default access_from_environment().\n\n"
    "Raises Misuse, PeerLost, Unauthorized, Mismatch.";

using SavedTables = std::pair<std::uint64_t, std::vector<nb::bytes>>;

SavedTables saved_tables(const Working& self) {
  const KeptByCodec kept = self.call([](TableWorker& worker) { return worker.kept_by_codec(); });
  SavedTables saved{kept.packets, {}};
  for (const auto& table : kept.tables) saved.second.emplace_back(table.data(), table.size());
  return saved;
}

void restore_tables(const Working& self, std::uint64_t packets, const std::vector<nb::bytes>& tables) {
  KeptByCodec kept{.packets = packets};
  for (const nb::bytes& table : tables) {
    const auto* const begin = static_cast<const std::byte*>(table.data());
    kept.tables.emplace_back(begin, begin + table.size());
  }
  self.call([&](TableWorker& worker) { worker.restore(kept); });
}

WorkerOptions options_of(const std::optional<std::vector<std::string>>& servers, std::optional<std::size_t> worker,
                         std::optional<std::size_t> workers, const std::optional<JobAccess>& access) {
  WorkerOptions options;
  if (servers) {
    options.servers = *servers;
    options.access = access ? *access : access_from_environment();
  } else {
    options = worker_from_environment();
    if (access) options.access = *access;
  }
  options.worker = worker.value_or(options.worker);
  options.workers = workers.value_or(options.workers);
  return options;
}

/// The storage of that name, if Python has it.
const PythonStorage* own_storage(const Given<PythonStorage>& given, std::string_view name,
                                 const CatalogueGiven& catalogue) {
  if (const auto* const own = std::get_if<const PythonStorage*>(&given)) return *own;
  for (const ComponentGiven& one : catalogue)
    if (const auto* const own = std::get_if<const PythonStorage*>(&one))
      if ((*own)->own_name() == name.substr(0, name.find(':'))) return *own;
  return nullptr;
}

Working connect(const CodingGiven& coding, const std::optional<std::vector<std::string>>& servers,
                std::optional<std::size_t> worker, std::optional<std::size_t> workers,
                const Given<PythonPlacement>& placement, const Given<PythonConsistency>& consistency,
                const Given<PythonStorage>& storage, const Given<PythonCodec>& answers, const std::string& flow,
                const Given<PythonRule>& optimizer, const nb::typed<nb::dict, std::string, double>& rule_options,
                Seconds timeout_s, const std::optional<JobAccess>& access, const CatalogueGiven& catalogue) {
  WorkerOptions options = options_of(servers, worker, workers, access);
  CatalogueChosen chosen(catalogue);
  options.placement = chosen.name(placement);
  options.consistency = chosen.name(consistency);
  options.storage = chosen.name(storage);
  options.coding = coding.options(chosen);
  options.answers = chosen.name(answers);
  options.flow = flow;
  options.optimizer = chosen.name(optimizer);
  options.catalogue = chosen.catalogue();
  for (const auto& [name, value] : rule_options)
    options.hyperparameters.emplace_back(nb::cast<std::string>(name), nb::cast<double>(value));
  if (const auto timeout = milliseconds(timeout_s, "timeout_s")) options.timeout = *timeout;
  auto signals = std::make_shared<Signals>();
  options.while_waiting = [signals] { signals->look(); };
  auto connected = signals->without_gil([&] { return TableWorker::connect(options); });
  return Working(std::move(connected), chosen.entries(), options, std::move(signals),
                 own_storage(storage, options.storage, catalogue));
}

void bind_connect(nb::class_<Working>& type) {
  const WorkerOptions usual;
  define_with_coding(
      [&](auto make, auto... coding) {
        type.def_static("connect", make, nb::kw_only(), "servers"_a = nb::none(), "worker"_a = nb::none(),
                        "workers"_a = nb::none(), "placement"_a = usual.placement, "consistency"_a = usual.consistency,
                        "storage"_a = usual.storage, "answers"_a = usual.answers, "flow"_a = usual.flow,
                        "optimizer"_a = usual.optimizer, "hyperparameters"_a = nb::dict(), "timeout_s"_a = nb::none(),
                        "access"_a = nb::none(), "catalogue"_a = CatalogueGiven{}, coding...,
                        nb::call_policy<Remembered>(), kConnectDoc);
      },
      connect);
}

void bind_tables(nb::class_<Working>& type) {
  type.def("create_table", &Working::create_table, "name"_a, "weights"_a, nb::kw_only(), "spared"_a = false,
           "Create a table for these weights, an array of float32, float16 or bfloat16 that is used in place, or what "
           "the `storage` loads, and return its index. The worker reads and writes the array in `start`, `update` and "
           "`sync`; in lockstep (staleness 0) one of float32 also between `update` and the return of `sync`. Every "
           "worker creates the same tables in the same order. An array of several dimensions is a matrix for codecs "
           "that code matrices: its first dimension has the rows. spared: layer-wise rules neither scale nor decay "
           "this table. Raises Misuse after `start`.")
      .def(
          "start",
          [](const Working& self, const std::optional<KeptTables>& earlier) {
            self.call([&](TableWorker& worker) { worker.start(earlier.value_or(KeptTables{})); });
          },
          "earlier"_a = nb::none(),
          "Every worker calls it. The servers adopt worker 0's weights; all workers hold them afterwards. A worker "
          "that starts later than the others continues from their current state. earlier: the result of `gather` in an "
          "earlier run, passed by every worker; the first step is then its `step`. Raises Mismatch if workers differ "
          "in tables, options or steps, Misuse for the state of another optimizer.")
      .def(
          "update",
          [](const Working& self, std::size_t table, nb::handle gradient, double rate) {
            const Array array = self.memory_of(gradient, "gradient");
            self.call([&](TableWorker& worker) { worker.update(table, array.buffer, rate); });
          },
          "table"_a, "gradient"_a, "rate"_a,
          "Add this worker's gradient of the current step to the table, with this learning rate; once a step. Does not "
          "wait for a server. Sets the gradient to zero.")
      .def(
          "clock", [](const Working& self, double rate) { self.call([&](TableWorker& own) { own.clock(rate); }); },
          "rate"_a,
          "End the step. A table without a call of `update` has no gradient in this step; `rate` applies to it.")
      .def(
          "is_ready",
          [](const Working& self, std::size_t table) {
            return self.call([&](TableWorker& worker) { return worker.is_ready(table); });
          },
          "table"_a, "Whether `sync` would return at once.")
      .def(
          "sync",
          [](const Working& self, std::size_t table) { self.call([&](TableWorker& worker) { worker.sync(table); }); },
          "table"_a,
          "Wait until the table's weights are as fresh as the consistency model requires, and update the array. Raises "
          "PeerLost, Timeout.")
      .def(
          "finish", [](const Working& self) { self.call([](TableWorker& worker) { worker.finish(); }); },
          "End the worker: send pending updates, and wait until every table holds all workers' updates of the same "
          "number of steps. Workers with the same number of steps end with bitwise equal weights.");
}

void bind_checkpoints(nb::class_<Working>& type) {
  type.def(
          "flush", [](const Working& self) { self.call([](TableWorker& worker) { worker.flush(); }); },
          "Call it between steps. Send pending updates, and wait until the servers have all workers' updates of the "
          "same number of steps.")
      .def(
          "gather", [](const Working& self) { return self.call([](TableWorker& own) { return own.gather(); }); },
          "Call `flush` and return the servers' state as KeptTables, without tables of rows (`visit_rows`). Without "
          "lockstep the optimizer's state is this "
          "worker's own, and the weights may include updates of later steps. Raises PeerLost if the other workers did "
          "not wait.")
      .def("kept_by_codec", saved_tables,
           "After `flush`: what the worker's packets so far have left out, as (packets, [bytes of each table]).")
      .def("restore", restore_tables, "packets"_a, "tables"_a,
           "After `start`, load what `kept_by_codec` returned: `restore(*kept)`. Raises Misuse for other lengths.");
}

}  // namespace

std::size_t Working::create_table(const std::string& name, nb::handle weights, bool spared) {
  const Array array = memory_of(weights, "weights");
  const bool is_object = !array.owner.is_valid();
  const auto lengths = is_object ? nb::cast<std::vector<std::int64_t>>(weights.attr("shape"))
                                 : std::vector(array.owner.shape_ptr(), array.owner.shape_ptr() + array.owner.ndim());
  const std::size_t rows = lengths.size() > 1 ? static_cast<std::size_t>(lengths.front()) : 0;
  const std::size_t table =
      call([&](TableWorker& worker) { return worker.create_table(name, array.buffer, spared, rows); });
  own()->arrays.push_back(array);
  if (storage_ != nullptr && storage_->loads_objects()) own()->entries->push_back(nb::borrow(weights));
  return table;
}

Array Working::memory_of(nb::handle object, const char* role) const {
  if (storage_ == nullptr || !storage_->loads_objects()) return array_of(object, {}, role);
  std::size_t elements = 1;
  for (const std::size_t length : nb::cast<std::vector<std::size_t>>(object.attr("shape"))) elements *= length;
  return {.owner = {}, .buffer = Buffer(object.ptr(), elements, DType::u8)};
}

void bind_worker(nb::module_& module) {
  nb::class_<WorkerStatistics>(module, "WorkerStatistics", "Counts of a worker since it connected.")
      .def_ro("pushed_bytes", &WorkerStatistics::pushed_bytes, "Message bodies.")
      .def_ro("pulled_bytes", &WorkerStatistics::pulled_bytes, "Message bodies.")
      .def_ro("stalest", &WorkerStatistics::stalest,
              "In steps: its clock minus the steps of all workers that its weights contain.")
      .def_ro("mean_staleness", &WorkerStatistics::mean_staleness)
      .def_ro("reconnections", &WorkerStatistics::reconnections);
  nb::class_<Working> type(module, "TableWorker", nb::is_weak_referenceable(), kDoc);
  bind_connect(type);
  bind_tables(type);
  define_rows(type);
  bind_checkpoints(type);
  type.def_prop_ro("worker", &Working::worker, "Its index: 0 to workers - 1.")
      .def_prop_ro("workers", &Working::workers, "How many workers the job has.")
      .def_prop_ro(
          "steps", [](const Working& self) { return self.call([](TableWorker& worker) { return worker.steps(); }); },
          "Completed, or missed because it started late.")
      .def(
          "statistics",
          [](const Working& self) { return self.call([](TableWorker& worker) { return worker.statistics(); }); },
          "Counts since it connected.");
  define_closing(type, "Disconnect. Without `finish`, servers wait for the worker until their patience ends.");
}

}  // namespace syncopate::bind
