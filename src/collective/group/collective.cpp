// The public functions of collectives.
#include "syncopate/collective.hpp"

#include "collective/group/access.hpp"
#include "collective/group/impl.hpp"

namespace syncopate {

namespace {

using collective::group::Request;

auto& impl_of(Group& group) noexcept { return GroupAccess::impl(group); }

Request request_of(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  return collective::group::request_in_place(collective, data, options, impl_of(group).caller_patience());
}

void run(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  impl_of(group).run(request_of(group, collective, data, options));
}

Range own_part(const Group& group, const Buffer& data, Scope scope) {
  const int rank = group.scope_rank(scope);
  if (rank < 0) return {};
  return even_part(data.count, group.scope_ranks(scope).size(), static_cast<std::size_t>(rank));
}

// A peer of -1 would mean a collective; -2 is refused like any other rank outside the group.
int named_peer(int peer) { return peer == -1 ? -2 : peer; }

Request send_request(int to, ConstBuffer data, const CollectiveOptions& options, transport::Patience patience) {
  return {.data = data, .options = options, .patience = patience, .to = named_peer(to)};
}

Request recv_request(int from, Buffer data, const CollectiveOptions& options, transport::Patience patience) {
  return {.data = {}, .options = options, .patience = patience, .out = data, .from = named_peer(from)};
}

}  // namespace

void allreduce(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::allreduce, data, options);
}

Range reduce_scatter(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::reduce_scatter, data, options);
  return own_part(group, data, options.scope);
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

void allgather_v(Group& group, Buffer data, std::span<const std::size_t> parts, const CollectiveOptions& options) {
  Request request = request_of(group, Collective::allgather_v, data, options);
  request.parts = {parts.begin(), parts.end()};
  impl_of(group).run(request);
}

void gather(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::gather, data, options);
}

Range scatter(Group& group, Buffer data, const CollectiveOptions& options) {
  run(group, Collective::scatter, data, options);
  return own_part(group, data, options.scope);
}

void alltoall(Group& group, ConstBuffer in, Buffer out, const CollectiveOptions& options) {
  impl_of(group).run({.collective = Collective::alltoall,
                      .data = in,
                      .options = options,
                      .patience = impl_of(group).caller_patience(),
                      .out = out});
}

void alltoall_v(Group& group, const ConstParts& in, const Parts& out, const CollectiveOptions& options) {
  impl_of(group).run({.collective = Collective::alltoall_v,
                      .data = in.data,
                      .options = options,
                      .patience = impl_of(group).caller_patience(),
                      .out = out.data,
                      .parts = {in.lengths.begin(), in.lengths.end()},
                      .out_parts = {out.lengths.begin(), out.lengths.end()}});
}

void barrier(Group& group, const CollectiveOptions& options) {
  run(group, Collective::barrier, {}, {.algorithm = options.algorithm, .scope = options.scope});
}

void refuse(Group& group, const std::string& reason) { impl_of(group).refuse(reason); }

void send(Group& group, int to, ConstBuffer data, const CollectiveOptions& options) {
  impl_of(group).run(send_request(to, data, options, impl_of(group).caller_patience()));
}

void recv(Group& group, int from, Buffer data, const CollectiveOptions& options) {
  impl_of(group).run(recv_request(from, data, options, impl_of(group).caller_patience()));
}

void exchange(Group& group, const ConstMessage& out, const Message& in, const CollectiveOptions& options) {
  Request request = send_request(out.peer, out.data, options, impl_of(group).caller_patience());
  request.out = in.data;
  request.from = named_peer(in.peer);
  impl_of(group).run(request);
}

Work start(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  return start(group, Call{.collective = collective, .data = data}, options);
}

Work start(Group& group, Call call, const CollectiveOptions& options) {
  // In place, unless a second vector is given; it is refused where the collective takes none.
  const bool has_out = collective::plan::swaps(call.collective) || call.out.count > 0;
  return impl_of(group).start({.collective = call.collective,
                               .data = call.data,
                               .options = options,
                               .out = has_out ? call.out : call.data,
                               .parts = std::move(call.parts),
                               .out_parts = std::move(call.out_parts)});
}

Work start_send(Group& group, int to, ConstBuffer data, const CollectiveOptions& options) {
  return impl_of(group).start(send_request(to, data, options, {}));
}

Work start_recv(Group& group, int from, Buffer data, const CollectiveOptions& options) {
  return impl_of(group).start(recv_request(from, data, options, {}));
}

}  // namespace syncopate
