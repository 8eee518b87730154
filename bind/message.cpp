// Messages between two ranks, as methods of a group.
#include "group.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

using Tag = std::optional<std::int64_t>;
/// Sending takes a ConstBuffer, receiving a Buffer.
template <class Data>
using Blocking = void (*)(Group& group, int peer, Data data, const CollectiveOptions& options);
template <class Data>
using Starting = Work (*)(Group& group, int peer, Data data, const CollectiveOptions& options);

/// A message that cannot be made may be awaited already.
Array array_or_abort(Membership& self, nb::handle data, const TypeName& dtype) try {
  return array_of(data, dtype, "data");
} catch (const Misuse& misuse) {
  self.group()->abort(misuse.what());
  throw;
}

struct Names {
  const char* method;
  const char* peer;
  const char* doc;
};

template <class Data>
void define(GroupClass& type, const Names& names, Blocking<Data> blocking, Starting<Data> starting) {
  type.def(
      names.method,
      [blocking, starting](Membership& self, int peer, nb::handle data, const std::string& tensor,
                           const TypeName& dtype, Tag tag) {
        const Array array = array_or_abort(self, data, dtype);
        const CollectiveOptions options{.name = tensor, .tag = tag};
        self.run([&](Group& group) { blocking(group, peer, array.buffer, options); },
                 [&](Group& group) { return starting(group, peer, array.buffer, options); });
      },
      nb::arg(names.peer), "data"_a, nb::kw_only(), "name"_a = "", "dtype"_a = nb::none(), "tag"_a = nb::none(),
      names.doc);
}

template <class Data>
void define_start(GroupClass& type, const Names& names, Starting<Data> starting) {
  type.def(
      names.method,
      [starting](Membership& self, int peer, nb::handle data, const std::string& tensor, const TypeName& dtype,
                 Tag tag) {
        std::vector<Array> arrays{array_or_abort(self, data, dtype)};
        const Buffer buffer = arrays.front().buffer;
        return self.start([&](Group& group) { return starting(group, peer, buffer, {.name = tensor, .tag = tag}); },
                          std::move(arrays));
      },
      nb::arg(names.peer), "data"_a, nb::kw_only(), "name"_a = "", "dtype"_a = nb::none(), "tag"_a = nb::none(),
      names.doc);
}

}  // namespace

void bind_messages(GroupClass& group) {
  define<ConstBuffer>(
      group,
      {"send", "to",
       "Return when `data` may be reused. Length, type and name must equal the receiver's, else Mismatch. Messages "
       "arrive in the order in which they were sent, also relative to collectives. Two `send` calls must not cross: "
       "use `start_send` and `start_recv`. A message with a `tag` matches the earliest receive with the same tag, "
       "and its name is only for errors; messages that arrive before their receives are kept in memory, at most "
       "1 GiB."},
      send, start_send);
  define<Buffer>(
      group,
      {"recv", "from_", "Return when the next message of that rank (with that `tag`, if it is given) is in `data`."},
      recv, start_recv);
  define_start<ConstBuffer>(
      group, {"start_send", "to", "Start sending, without waiting. `data` stays unchanged until it has ended."},
      start_send);
  define_start<Buffer>(group, {"start_recv", "from_", "Start receiving, without waiting."}, start_recv);
}

}  // namespace syncopate::bind
