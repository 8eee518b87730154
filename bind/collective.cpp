// Collectives as methods of a group: blocking, in place, and `start` for those that are not waited for.
#include <nanobind/stl/vector.h>

#include "group.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;
using Lengths = std::vector<std::size_t>;

/// A call as its own arguments describe it; the keywords of all collectives are added.
struct Task {
  Collective collective = Collective::allreduce;
  nb::handle data, out{};
  Lengths parts{}, out_parts{};
  std::string op = "sum";
  int root = 0;
};

/// A call whose arrays are held.
struct Prepared {
  Call call;
  CollectiveOptions options;
  std::vector<Array> arrays;
};

Buffer hold(std::vector<Array>& arrays, nb::handle object, const TypeName& dtype, const char* role) {
  if (!object.is_valid() || object.is_none()) return {};
  return arrays.emplace_back(array_of(object, dtype, role)).buffer;
}

/// A bad argument on one rank fails the call on all ranks, so that the ranks stay in step.
Prepared prepared(Membership& self, const Task& task, const CollectiveOptions& options, const TypeName& dtype) try {
  Prepared made{{.collective = task.collective, .parts = task.parts, .out_parts = task.out_parts}, options, {}};
  made.options.op = reduce_op_named(task.op);
  made.options.root = task.root;
  made.call.data = hold(made.arrays, task.data, dtype, "data");
  made.call.out = hold(made.arrays, task.out, dtype, "out");
  return made;
} catch (const Misuse& misuse) {
  self.signals()->without_gil([&] { refuse(*self.group(), misuse.what()); });
  throw;
}

void run(Group& group, const Call& call, const CollectiveOptions& options) {
  switch (call.collective) {
    case Collective::allreduce:
      return allreduce(group, call.data, options);
    case Collective::reduce_scatter:
      return static_cast<void>(reduce_scatter(group, call.data, options));
    case Collective::allgather:
      return allgather(group, call.data, options);
    case Collective::allgather_v:
      return allgather_v(group, call.data, call.parts, options);
    case Collective::broadcast:
      return broadcast(group, call.data, options);
    case Collective::reduce:
      return reduce(group, call.data, options);
    case Collective::gather:
      return gather(group, call.data, options);
    case Collective::scatter:
      return static_cast<void>(scatter(group, call.data, options));
    case Collective::alltoall:
      return alltoall(group, call.data, call.out, options);
    case Collective::alltoall_v:
      return alltoall_v(group, {call.data, call.parts}, {call.out, call.out_parts}, options);
    case Collective::barrier:
      return barrier(group, options);
  }
}

void run(Membership& self, const Prepared& made) {
  self.run([&](Group& group) { run(group, made.call, made.options); },
           [&](Group& group) { return start(group, made.call, made.options); });
}

/// This rank's part of the flat vector.
nb::slice own_part(const Membership& self, const Prepared& made) {
  const auto group = self.group();
  const int rank = group->scope_rank(made.options.scope);
  if (rank < 0) return nb::slice(Py_ssize_t{0}, Py_ssize_t{0}, Py_ssize_t{1});
  const auto size = group->scope_ranks(made.options.scope).size();
  const Range part = even_part(made.call.data.count, size, static_cast<std::size_t>(rank));
  return nb::slice(static_cast<Py_ssize_t>(part.begin), static_cast<Py_ssize_t>(part.end), Py_ssize_t{1});
}

struct Heading {
  const char* name;
  const char* doc;
};

/// Defines a method: `task` makes the call of its own arguments, whose names follow; the keywords of all collectives
/// come last.
template <bool kReturnsPart, class... Own, class... Names>
void define(GroupClass& type, const Heading& heading, Task (*task)(Own...), const Names&... names) {
  type.def(
      heading.name,
      [task](Membership& self, Own... own, const std::string& algorithm, const std::string& tensor,
             const std::string& scope, const TypeName& dtype) {
        const Prepared made =
            prepared(self, task(own...), {.algorithm = algorithm, .name = tensor, .scope = scope_named(scope)}, dtype);
        run(self, made);
        if constexpr (kReturnsPart) return own_part(self, made);
      },
      names..., nb::kw_only(), "algorithm"_a = "auto", "name"_a = "", "scope"_a = "group", "dtype"_a = nb::none(),
      heading.doc);
}

void bind_reductions(GroupClass& group) {
  define<false>(
      group,
      {"allreduce",
       "Every rank ends with the reduction of all ranks' vectors. op: \"sum\", \"min\", \"max\", \"product\" or "
       "\"average\" (the sum divided by the number of ranks; of integers truncated towards zero)."},
      +[](nb::handle data, const std::string& op) { return Task{.data = data, .op = op}; }, "data"_a, "op"_a = "sum");
  define<true>(
      group,
      {"reduce_scatter",
       "Rank r ends with part r reduced; the rest of `data` is unspecified. Returns this rank's part, as a slice of "
       "the flat vector."},
      +[](nb::handle data, const std::string& op) {
        return Task{.collective = Collective::reduce_scatter, .data = data, .op = op};
      },
      "data"_a, "op"_a = "sum");
  define<false>(
      group, {"reduce", "The root ends with the reduction; `data` of the other ranks is unspecified."},
      +[](nb::handle data, int root, const std::string& op) {
        return Task{.collective = Collective::reduce, .data = data, .op = op, .root = root};
      },
      "data"_a, "root"_a = 0, "op"_a = "sum");
}

void bind_rooted(GroupClass& group) {
  define<false>(
      group, {"broadcast", "Every rank ends with the root's vector."},
      +[](nb::handle data, int root) { return Task{.collective = Collective::broadcast, .data = data, .root = root}; },
      "data"_a, "root"_a = 0);
  define<false>(
      group,
      {"gather",
       "Rank r contributes part r; the root ends with all parts. On other ranks all but their own part is "
       "unspecified."},
      +[](nb::handle data, int root) { return Task{.collective = Collective::gather, .data = data, .root = root}; },
      "data"_a, "root"_a = 0);
  define<true>(
      group,
      {"scatter", "Rank r ends with part r of the root's vector, and gets it returned as a slice of the flat vector."},
      +[](nb::handle data, int root) { return Task{.collective = Collective::scatter, .data = data, .root = root}; },
      "data"_a, "root"_a = 0);
}

void bind_gathers(GroupClass& group) {
  define<false>(
      group, {"allgather", "Rank r contributes part r; every rank ends with all parts."},
      +[](nb::handle data) { return Task{.collective = Collective::allgather, .data = data}; }, "data"_a);
  define<false>(
      group,
      {"allgather_v",
       "Rank r contributes parts[r] elements, which lie behind those of lower ranks; every rank ends with all. `parts` "
       "is equal on all ranks, and its sum is the length of `data`."},
      +[](nb::handle data, const Lengths& parts) {
        return Task{.collective = Collective::allgather_v, .data = data, .parts = parts};
      },
      "data"_a, "parts"_a);
  define<false>(
      group,
      {"alltoall",
       "Rank s sends part r of its `data` to rank r, which receives it as part s of its `out`. Both have the same "
       "length, a multiple of the number of ranks."},
      +[](nb::handle data, nb::handle out) {
        return Task{.collective = Collective::alltoall, .data = data, .out = out};
      },
      "data"_a, "out"_a);
  define<false>(
      group, {"alltoall_v", "As alltoall, with parts of any lengths, which every rank gives for itself."},
      +[](nb::handle data, const Lengths& parts, nb::handle out, const Lengths& out_parts) {
        return Task{
            .collective = Collective::alltoall_v, .data = data, .out = out, .parts = parts, .out_parts = out_parts};
      },
      "data"_a, "parts"_a, "out"_a, "out_parts"_a);
}

void bind_start(GroupClass& group) {
  group.def(
      "start",
      [](Membership& self, const std::string& collective, nb::handle data, nb::handle out, const Lengths& parts,
         const Lengths& out_parts, const std::string& op, int root, const std::string& algorithm,
         const std::string& tensor, const std::string& scope, const TypeName& dtype) {
        const Task task{collective_named(collective), data, out, parts, out_parts, op, root};
        Prepared made =
            prepared(self, task, {.algorithm = algorithm, .name = tensor, .scope = scope_named(scope)}, dtype);
        return self.start([&](Group& own) { return start(own, made.call, made.options); }, std::move(made.arrays));
      },
      "collective"_a, "data"_a = nb::none(), nb::kw_only(), "out"_a = nb::none(), "parts"_a = Lengths{},
      "out_parts"_a = Lengths{}, "op"_a = "sum", "root"_a = 0, "algorithm"_a = "auto", "name"_a = "",
      "scope"_a = "group", "dtype"_a = nb::none(),
      "Start the collective of that name without waiting for it. A thread of the group carries collectives out in the "
      "order of the calls. Arguments are those of the method of that name.");
}

}  // namespace

void bind_collectives(GroupClass& group) {
  bind_reductions(group);
  bind_rooted(group);
  bind_gathers(group);
  group.def(
      "barrier",
      [](Membership& self, const std::string& algorithm, const std::string& scope) {
        const CollectiveOptions options{.algorithm = algorithm, .scope = scope_named(scope)};
        run(self, prepared(self, {.collective = Collective::barrier}, options, {}));
      },
      nb::kw_only(), "algorithm"_a = "auto", "scope"_a = "group", "Return when every rank has called it.");
  bind_start(group);
  group.def(
      "refuse",
      [](Membership& self, const std::string& reason) {
        self.signals()->without_gil([&] { refuse(*self.group(), reason); });
      },
      "reason"_a, nb::sig("def refuse(self, reason: str) -> typing.NoReturn"),
      "Make a collective call that is refused: raise Misuse with this text, and count as a call. Ranks that all refuse "
      "stay in step; if only some do, the calls of the others raise Mismatch with the reason.");
}

}  // namespace syncopate::bind
