// ControlProtocol, the calls of other threads: orders go to the feeding thread, questions to the group state.
#include "transport/membership/control_protocol.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace syncopate::transport::membership {

namespace {

constexpr base::Duration kShortestGrace = std::chrono::milliseconds(300), kLongestGrace = std::chrono::seconds(1);

/// If ranks called different operations, or waited too long for each other, no rank failed before the others.
std::optional<int> culprit_of(const Failure& failure) {
  if (failure.kind == ErrorKind::mismatch || failure.kind == ErrorKind::timeout) return std::nullopt;
  const int culprit = failure.where.peer >= 0 ? failure.where.peer : failure.where.rank;
  return culprit >= 0 ? std::optional(culprit) : std::nullopt;
}

}  // namespace

ControlProtocol::ControlProtocol(ControlOptions options, std::vector<socket::Descriptor> listeners,
                                 std::shared_ptr<Mailbox> mailbox)
    : options_(std::move(options)),
      mailbox_(std::move(mailbox)),
      state_(options_.rank),
      poller_(mailbox_->poller().system()),
      beat_(options_.silence, now()),
      acceptor_(poller_, {.rank = options_.rank,
                          .group = options_.group,
                          .secret = options_.secret,
                          .meeting = options_.meeting,
                          .tls = options_.tls ? TlsChoice::on : TlsChoice::off,
                          .log = options_.log}),
      tree_(poller_) {
  if (size() == 1) return;
  for (socket::Descriptor& listener : listeners) acceptor_.open(std::move(listener));
  close_listeners();
  if (options_.rank > 0) call(parent_of(options_.rank));
}

bool ControlProtocol::has_joined() const {
  if (const auto failure = state_.failure()) raise(*failure);
  const std::set<int> awaited = neighbours_of(options_.rank, size());
  return joined_.with([&](const std::set<int>& joined) { return std::ranges::includes(joined, awaited); });
}

void ControlProtocol::await_joined() {
  const std::set<int> awaited = neighbours_of(options_.rank, size());
  const auto complete = [&](const std::set<int>& joined) { return failed() || std::ranges::includes(joined, awaited); };
  joined_.wait_until(base::kNever, complete, [](const auto&) {});
}

/// A failure crosses the tree edge by edge. If ranks are far apart, that takes longer than closing links.
base::Duration ControlProtocol::grace() const {
  return std::clamp<base::Duration>(options_.silence / 2, kShortestGrace, kLongestGrace);
}

connect::Hello ControlProtocol::hello(connect::Purpose purpose, int to, std::uint32_t stream) const {
  return {
      .version = {}, .purpose = purpose, .group = options_.group, .from = options_.rank, .to = to, .stream = stream};
}

void ControlProtocol::call(int rank) {
  acceptor_.call(options_.addresses[static_cast<std::size_t>(rank)], options_.source,
                 hello(connect::Purpose::control, rank, 0));
}

void ControlProtocol::connect_data(int peer) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::connect_data, peer, 0}); });
  poller_.wake();
}

void ControlProtocol::connect_memory(int peer) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::connect_memory, peer, 0}); });
  poller_.wake();
}

void ControlProtocol::report(Failure failure) {
  if (failure.where.rank < 0) failure.where.rank = options_.rank;
  learn(failure, options_.rank);
  poller_.wake();
}

void ControlProtocol::began(const OperationRecord& record) {
  if (const auto wrong = state_.began(record)) report(*wrong);
}

void ControlProtocol::mismatch(int peer, std::uint64_t number) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::ask, peer, number}); });
  poller_.wake();
}

void ControlProtocol::learn(const Failure& failure, int from) {
  if (!state_.decide(failure)) return;
  options_.log.write(LogLevel::info, fmt::format("rank {}: {} (from rank {}): {}", options_.rank, name_of(failure.kind),
                                                 from, failure.message));
  if (const auto culprit = culprit_of(failure)) {
    options_.log.write(LogLevel::info, fmt::format("the first to fail was rank {}", *culprit));
    if (options_.blame) options_.blame->report(*culprit);
  }
  joined_.change([](auto&) {});
  mailbox_->ring();
}

void ControlProtocol::lost(int rank, const std::string& reason) {
  learn({ErrorKind::peer_lost, fmt::format("rank {} {}", rank, reason), {options_.rank, rank, {}, {}}}, options_.rank);
}

void ControlProtocol::ran_out_of_sockets(const std::string& reason) {
  const std::string what = fmt::format("rank {} {}", options_.rank, reason);
  learn({ErrorKind::system_failure, what, {options_.rank}}, options_.rank);
}

}  // namespace syncopate::transport::membership
