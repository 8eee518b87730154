// Virtual streams: delays, breaks, and ends that are noticed late.
#include "virtual/server/stream.hpp"

namespace syncopate::virtual_server {

using server::Payload, server::rpc::Ending;

namespace {
const Ending kLost{ErrorKind::peer_lost, "the stream broke"};
}  // namespace

void Wire::finish(std::size_t at, const Ending& how) {
  if (std::exchange(has_ended[at], true)) return;
  const auto told = std::exchange(events[at], {}).ended;
  if (told) told(how);
}

void Wire::arrive(const std::shared_ptr<Wire>& self, std::size_t at, Payload message) {
  if (!is_stopped(at) && unread[at].empty()) return take(self, at, std::move(message));
  unread[at].push_back(std::move(message));
  if (unread[at].size() == 1) world.at(*stopped_until[at], [self, at] { self->go_on(self, at); });
}

bool Wire::is_stopped(std::size_t at) const { return stopped_until[at] != nullptr && world.now() < *stopped_until[at]; }

/// In the order in which they came, also where one stop follows another.
void Wire::go_on(const std::shared_ptr<Wire>& self, std::size_t at) {
  if (is_stopped(at)) return world.at(*stopped_until[at], [self, at] { self->go_on(self, at); });
  for (; !unread[at].empty(); unread[at].pop_front()) take(self, at, unread[at].front());
}

void Wire::take(const std::shared_ptr<Wire>& self, std::size_t at, Payload message) {
  if (!is_open || has_ended[at] || !events[at].received) return;
  try {
    const auto received = events[at].received;
    received(std::move(message));
  } catch (const Error& error) {
    is_open = false;
    const Ending own{error.kind(), error.what()}, other{ErrorKind::remote_failure, error.what()};
    world.in(0ns, [self, at, own] { self->finish(at, own); });
    world.in(world.draw(0ns, Duration(20ms)), [self, at, other] { self->finish(1 - at, other); });
  }
}

void End::later(std::function<void()> what) {
  Time& last = wire_->last[side_];
  last = std::max(last, wire_->world.now() + wire_->world.draw(Duration(10us), kMostDelay));
  wire_->world.at(last, std::move(what));
}

void End::end() {
  if (wire_->has_ended[side_]) return;
  wire_->has_ended[side_] = true;
  wire_->events[side_] = {};
  if (!std::exchange(wire_->is_open, false)) return;
  later([wire = wire_, other = 1 - side_] { wire->finish(other, kLost); });
}

void End::send(std::uint64_t, base::ConstBytes head, Payload body) {
  if (is_closed_ || !wire_->is_open) return;
  auto bytes = std::make_shared<std::vector<std::byte>>(head.begin(), head.end());
  bytes->insert(bytes->end(), body.bytes.begin(), body.bytes.end());
  const base::ConstBytes all(*bytes);
  later([wire = wire_, at = 1 - side_, message = Payload{std::move(bytes), all}] { wire->arrive(wire, at, message); });
}

void End::close(std::string_view error) {
  if (std::exchange(is_closed_, true)) return;
  const Ending other{error.empty() ? std::nullopt : std::optional(ErrorKind::remote_failure), std::string(error)};
  later([wire = wire_, side = side_, other] {
    wire->is_open = false;
    wire->finish(1 - side, other);
    wire->finish(side, {});
  });
}

}  // namespace syncopate::virtual_server
