// TCP control, the side that other threads call: orders to the control thread, questions to the ledger.
#include "transport/tcp/control.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "transport/rendezvous/rendezvous.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr auto kShortestBeat = std::chrono::milliseconds(5);

/// Whether this connection reaches its own owner's edge: only a rank's neighbours come up.
std::set<int> awaited_by(int rank, int size) {
  const auto ranks = neighbours_of(rank, size);
  return {ranks.begin(), ranks.end()};
}

}  // namespace

TcpControl::TcpControl(ControlOptions options, std::vector<Descriptor> listeners, std::shared_ptr<Mailbox> mailbox)
    : options_(std::move(options)),
      beat_(std::max<base::Duration>(options_.silence / 8, kShortestBeat)),
      mailbox_(std::move(mailbox)),
      ledger_(options_.rank),
      door_(poller_, {.rank = options_.rank, .group = options_.group, .secret = options_.secret, .log = options_.log}),
      tree_(poller_) {
  if (size() == 1) return;
  for (Descriptor& listener : listeners) door_.open(std::move(listener));
  if (options_.rank > 0) {
    const int parent = parent_of(options_.rank);
    door_.call(options_.addresses[static_cast<std::size_t>(parent)], options_.source,
               hello(Purpose::control, parent, 0));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TcpControl::~TcpControl() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  poller_.wake();
  thread_.join();
}

void TcpControl::wait_joined(base::Time deadline) {
  const std::set<int> awaited = awaited_by(options_.rank, size());
  const auto complete = [&](const std::set<int>& joined) { return failed() || joined == awaited; };
  const bool came = joined_.wait_until(deadline, complete, [](const auto&) {});
  if (const auto failure = ledger_.failure()) raise(*failure);
  if (came) return;
  std::vector<bool> present(static_cast<std::size_t>(size()), true);
  joined_.with([&](const std::set<int>& joined) {
    for (const int rank : awaited) present[static_cast<std::size_t>(rank)] = joined.contains(rank);
  });
  throw Timeout(fmt::format("{} did not connect to rank {}", rendezvous::missing_ranks(present), options_.rank),
                {.rank = options_.rank});
}

Hello TcpControl::hello(Purpose purpose, int to, std::uint32_t stream) const {
  return {
      .version = {}, .purpose = purpose, .group = options_.group, .from = options_.rank, .to = to, .stream = stream};
}

void TcpControl::connect_data(int peer) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::connect_data, peer, 0}); });
  poller_.wake();
}

void TcpControl::connect_memory(int peer) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::connect_memory, peer, 0}); });
  poller_.wake();
}

void TcpControl::report(Failure failure) {
  if (failure.where.rank < 0) failure.where.rank = options_.rank;
  learn(failure, options_.rank);
  poller_.wake();
}

void TcpControl::began(const OperationRecord& record) {
  if (const auto wrong = ledger_.began(record)) report(*wrong);
}

void TcpControl::mismatch(int peer, std::uint64_t number) {
  orders_.with([&](auto& orders) { orders.push_back({Order::Kind::ask, peer, number}); });
  poller_.wake();
}

void TcpControl::learn(const Failure& failure, int from) {
  if (!ledger_.settle(failure)) return;
  options_.log.write(LogLevel::info,
                     fmt::format("rank {}: {} (from rank {}): {}", options_.rank, failure.kind, from, failure.message));
  joined_.change([](auto&) {});
  mailbox_->ring();
}

void TcpControl::lost(int rank, const std::string& reason) {
  learn({"PeerLost", fmt::format("rank {} {}", rank, reason), {options_.rank, rank, {}, {}}}, options_.rank);
}

}  // namespace syncopate::transport::tcp
