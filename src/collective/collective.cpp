// The collectives as users call them.
#include "syncopate/collective.hpp"

#include "collective/state.hpp"

namespace syncopate {

namespace {

void run(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  Group::Impl& impl = group.impl();
  impl.run({collective, data, options, impl.caller_patience()});
}

}  // namespace

void allreduce(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::allreduce, data, options);
}

Range reduce_scatter(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::reduce_scatter, data, options);
  return even_part(data.count, static_cast<std::size_t>(group.size()), static_cast<std::size_t>(group.rank()));
}

void allgather(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::allgather, data, options);
}

void broadcast(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::broadcast, data, options);
}

void reduce(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::reduce, data, options);
}

void barrier(Group& group) {
  // The lightest all-reduce there is: nobody has the result before everybody has contributed.
  std::int32_t token = 0;
  run(group, Collective::barrier, Buffer(&token, 1, DType::i32), {});
}

Work start(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  return group.impl().start({collective, data, options, {}});
}

}  // namespace syncopate
