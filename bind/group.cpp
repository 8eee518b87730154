// Joining, leaving, splitting, and what a group knows of itself.
#include "group.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <future>
#include <thread>

#include "remembered.hpp"
#include "seconds.hpp"
#include "syncopate/error.hpp"
#include "syncopate/group.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kDoc =
    "One rank's membership in a group. Every rank calls the same collectives in the same order.\n\n"
    "Collectives work in place on arrays of any framework that offers DLPack or the buffer protocol: contiguous, "
    "writable, in the CPU's memory, with elements of float32, float64, float16, bfloat16, int32, int64 or uint8. An "
    "array is taken as a flat vector, and part r of it is what `numpy.array_split` would give rank r.\n\n"
    "Keywords of all collectives: `algorithm`, a name from `syncopate info`; `name`, the tensor in messages of errors, "
    "equal on all ranks; `scope`: \"group\", \"host\" (the ranks of this host) or \"across\" (those of equal place on "
    "every host); `dtype`: treat the elements as this type of equal width (\"bf16\" in an array of uint16).\n\n"
    "They raise Misuse, PeerLost, Timeout, Mismatch, RemoteFailure or Corrupt; after an error every call raises it "
    "again, and recovery is a new group. Used as a context manager a group is left at the end, and aborted if an "
    "exception leaves the block. Thread-safe.";
constexpr const char* kJoinDoc =
    "Join the job that the arguments and the environment describe.\n\n"
    "Arguments that are not given are taken from SYNCOPATE_* variables, then from those of torchrun, Open MPI, MPICH, "
    "Slurm and PMI; without any the group has one rank. rendezvous: \"tcp://host:port\" (rank 0 listens there), "
    "\"file:///folder\" or \"local://name\". secret_file: the job's secret, required unless every address is loopback. "
    "timeout_s: seconds that one collective may take while all ranks live (120); join_timeout_s: seconds of joining "
    "(60); silence_s: seconds after which a silent rank counts as lost (2). ranks_per_host: treat this number of "
    "neighbouring ranks as one host; 0: the real hosts. while_joining: called without arguments about ten times a "
    "second; what it raises ends the call.\n\n"
    "Raises Misuse, Timeout (naming the ranks that are missing), Unauthorized, SystemFailure.";

/// Leaving waits for operations that were started, and so it needs the GIL free and a thread that is not the group's.
std::shared_ptr<Group> shared(std::unique_ptr<Group> group, const Origin& origin) {
  return {group.release(), [calling = origin.calling](Group* left) {
            if (*calling == std::this_thread::get_id()) return std::thread([left] { delete left; }).detach();
            if (PyGILState_GetThisThreadState() == nullptr) return delete left;  // a thread of the library
            const nb::gil_scoped_acquire acquire;  // a thread of Python may have released it
            const nb::gil_scoped_release release;
            delete left;
          }};
}

std::shared_ptr<Signals> forward_signals(GroupOptions& options) {
  auto signals = std::make_shared<Signals>();
  options.while_waiting = [signals] { signals->look(); };
  return signals;
}

void bind_joining(GroupClass& group) {
  group.def_static(
      "join",
      [](std::optional<int> rank, std::optional<int> size, const std::string& rendezvous, const std::string& interface,
         const std::string& secret_file, const std::string& tls, const std::string& transport, Seconds timeout_s,
         Seconds join_timeout_s, Seconds silence_s, std::optional<int> streams, int ranks_per_host,
         const std::string& cluster, std::optional<bool> checksum, std::optional<nb::callable> while_joining) {
        GroupOptions options{.rank = rank,
                             .size = size,
                             .rendezvous = rendezvous,
                             .interface = interface,
                             .secret_file = secret_file,
                             .tls = tls.empty() ? std::nullopt : std::optional(tls_named(tls)),
                             .timeout = milliseconds(timeout_s, "timeout_s"),
                             .join_timeout = milliseconds(join_timeout_s, "join_timeout_s"),
                             .silence = milliseconds(silence_s, "silence_s"),
                             .transport = transport.empty() ? std::nullopt : std::optional(transport_named(transport)),
                             .streams = streams,
                             .ranks_per_host = ranks_per_host,
                             .cluster = cluster,
                             .checksum = checksum};
        auto signals = forward_signals(options);
        const auto look = [&] {
          if (while_joining) (*while_joining)();
        };
        return Membership(made_on_own_thread([options] { return Group::join(options); }, look), std::move(signals));
      },
      nb::kw_only(), "rank"_a = nb::none(), "size"_a = nb::none(), "rendezvous"_a = "", "interface"_a = "",
      "secret_file"_a = "", "tls"_a = "", "transport"_a = "", "timeout_s"_a = nb::none(),
      "join_timeout_s"_a = nb::none(), "silence_s"_a = nb::none(), "streams"_a = nb::none(), "ranks_per_host"_a = 0,
      "cluster"_a = "", "checksum"_a = nb::none(), "while_joining"_a = nb::none(), nb::call_policy<Remembered>(),
      kJoinDoc);
  group.def_static(
      "threads",
      [](int size, Seconds timeout_s, int ranks_per_host) {
        GroupOptions options{.timeout = milliseconds(timeout_s, "timeout_s"), .ranks_per_host = ranks_per_host};
        auto signals = forward_signals(options);
        std::vector<Membership> ranks;
        for (auto& rank : Group::threads(size, options)) ranks.emplace_back(std::move(rank), signals);
        return ranks;
      },
      "size"_a, nb::kw_only(), "timeout_s"_a = nb::none(), "ranks_per_host"_a = 0, nb::call_policy<Remembered>(),
      "A group of `size` ranks inside this process, each for one thread; item i has rank i.");
}

void bind_leaving(GroupClass& group) {
  group
      .def("close", &Membership::close,
           "Leave the group. Operations that were started end first, in the group's timeout at the latest.")
      .def(
          "abort", [](Membership& self, const std::string& reason) { self.group()->abort(reason); }, "reason"_a,
          "From now on every call, on every rank, raises RemoteFailure with this text.")
      .def_prop_ro("closed", &Membership::is_closed, "Whether `close` was called.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Group"))
      .def(
          "__exit__",
          [](Membership& self, nb::handle, nb::handle error, nb::handle) {
            if (!error.is_none() && !self.is_closed()) self.group()->abort(nb::cast<std::string>(nb::repr(error)));
            self.close();
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none(),
          nb::sig("def __exit__(self, kind: object, error: object, trace: object) -> None"));
}

/// On threads of C++: Python starts none at the end of a program.
void close_together(const std::vector<nb::object>& ones) {
  constexpr auto kThreadIfPossible = std::launch::async | std::launch::deferred;
  std::vector<std::future<void>> ends;
  {
    const nb::gil_scoped_release release;
    for (const nb::object& one : ones)
      ends.push_back(std::async(kThreadIfPossible, [&] { with_gil("close", [&] { one.attr("close")(); }); }));
    for (const std::future<void>& end : ends) end.wait();
  }
  for (std::future<void>& end : ends) end.get();
}

void bind_properties(GroupClass& group) {
  group
      .def_prop_ro(
          "rank", [](const Membership& self) { return self.group()->rank(); }, "This rank: 0 to size - 1.")
      .def_prop_ro(
          "size", [](const Membership& self) { return self.group()->size(); }, "How many ranks there are.")
      .def_prop_ro(
          "transport", [](const Membership& self) { return self.group()->transport(); },
          "\"shm\", \"tcp\", \"shm+tcp\" or \"inproc\".")
      .def_prop_ro(
          "hosts", [](const Membership& self) { return self.group()->hosts(); },
          "The host number of each rank, from 0 in the order of their first ranks.")
      .def_prop_ro(
          "traffic_bytes",
          [](const Membership& self) {
            const Traffic traffic = self.group()->traffic();
            return std::pair(traffic.sent_bytes, traffic.received_bytes);
          },
          "Bytes that this rank has sent and received, headers included.")
      .def(
          "set_timeout",
          [](Membership& self, double timeout_s) { self.group()->set_timeout(*milliseconds(timeout_s, "timeout_s")); },
          "timeout_s"_a, "Change the `timeout_s` of joining, for operations that begin from now on.")
      .def(
          "scope_ranks",
          [](const Membership& self, const std::string& scope) {
            return self.group()->scope_ranks(scope_named(scope));
          },
          "scope"_a, "The ranks over which a call with this scope runs, in order; empty if this rank is in none.");
}

void bind_making(GroupClass& group) {
  group
      .def(
          "split",
          [](Membership& self, int color, int key) -> std::optional<Membership> {
            const auto whole = self.group();
            auto part = self.signals()->without_gil([&] { return whole->split(color, key); });
            if (!part) return std::nullopt;
            return Membership(std::move(part), self.signals());
          },
          "color"_a, "key"_a, nb::call_policy<Remembered>(),
          "Split the group as MPI_Comm_split does: ranks of one colour form a group, ordered by (key, rank); None for "
          "a negative colour. Every rank calls it.")
      .def(
          "allocate",
          [](Membership& self, nb::handle shape, const std::string& dtype) {
            const Shape wanted = shape_of(shape, dtype);
            const std::size_t bytes = wanted.elements() * size_of(wanted.dtype);
            const auto memory = self.group()->allocate(bytes);
            return array_over(memory.get(), wanted, owner_of(memory));
          },
          "shape"_a, "dtype"_a = "f32",
          "Zeroed memory that ranks of this host reach directly, so that collectives there copy nothing: an array with "
          "DLPack and the buffer protocol, for `numpy.from_dlpack` or `torch.from_dlpack`. It may outlive the group.");
}

}  // namespace

Membership::Membership(std::unique_ptr<Group> group, std::shared_ptr<Signals> signals)
    : origin_{{}, std::make_shared<std::atomic<std::thread::id>>()},
      group_(shared(std::move(group), origin_)),
      signals_(std::move(signals)) {
  origin_.group = group_;
}

std::shared_ptr<Group> Membership::group() const {
  if (group_) return group_;
  throw Misuse("this group was closed; join another one");
}

void Membership::run(const std::function<void(Group&)>& blocking, const std::function<Work(Group&)>& starting) {
  const auto group = this->group();
  if (latest_ && !latest_->ready()) return start(starting, {}).wait();
  signals_->without_gil([&] { blocking(*group); });
}

StartedWork Membership::start(const std::function<Work(Group&)>& starting, std::vector<Array> arrays) {
  const auto group = this->group();
  // The group may wait for room in its queues, and its thread may be in a callback that wants the GIL.
  Work work = signals_->without_gil([&] { return starting(*group); });
  latest_ = std::make_shared<Work>(work);
  return {std::move(work), origin_, std::move(arrays)};
}

void bind_group(nb::module_& module) {
  GroupClass group(module, "Group", nb::is_weak_referenceable(), kDoc);
  bind_joining(group);
  bind_leaving(group);
  bind_properties(group);
  bind_making(group);
  bind_collectives(group);
  bind_messages(group);
  module.def("close_together", close_together, "ones"_a,
             "Call `close` of each at the same time; raise the first error when all have ended.");
}

}  // namespace syncopate::bind
