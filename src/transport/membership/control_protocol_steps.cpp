// ControlProtocol, the steps of `feed`: connections, heartbeats, failures and questions.
#include <fmt/format.h>

#include <algorithm>

#include "transport/connect/rendezvous/rendezvous.hpp"
#include "transport/membership/control_protocol.hpp"

namespace syncopate::transport::membership {

namespace {
constexpr auto kAnswerTime = std::chrono::milliseconds(500);
constexpr std::size_t kMostRelayed = 1 << 16;  // ranks ask only when they are about to fail: a few times each
constexpr auto kBetweenCalls = std::chrono::milliseconds(10);
}  // namespace

void ControlProtocol::feed(std::span<const socket::Ready> ready) {
  const base::Time woke = now();
  const base::Duration ran = beat_.run(woke);
  dispatch(ready);
  acceptor_.expire(woke);
  run_orders();
  take_connections();
  if (const std::string why = acceptor_.exhaustion(); !why.empty() && awaits_callers()) ran_out_of_sockets(why);
  tree_.age(ran, options_.silence);
  read_tree();
  if (is_joining()) age_joining(ran);
  if (leaves()) regroup();
  expire_questions(woke);
  spread_failure(-1);
  if (woke >= call_again_at_) repeat_calls();
  if (beat_.is_due(woke)) tick();
  tree_.flush();
  if (leaves()) decide_end();
}

/// Includes the moment of a rank's silence, not only beats: when a host vanishes, all its neighbours must report it
/// before one of them sees links closed by ranks that already know.
base::Time ControlProtocol::next_deadline() const {
  const base::Time missed = beat_.last_run() + (options_.silence - tree_.longest_silence());
  base::Time next = std::min({beat_.next(), acceptor_.next_deadline(), call_again_at_, go_at_, missed});
  if (is_joining()) next = std::min(next, beat_.last_run() + (options_.join_time - joining_for_));
  for (const OpenQuestion& question : questions_) next = std::min(next, question.deadline);
  return next;
}

/// Only time in which this process ran counts: while it was stopped, its neighbours' calls waited for it. The failure
/// goes to all ranks, because those that have joined wait for this one.
void ControlProtocol::age_joining(base::Duration ran) {
  const std::set<int> awaited = neighbours_of(options_.rank, size());
  const std::set<int> joined = joined_.with([](const std::set<int>& ranks) { return ranks; });
  has_all_edges_ = std::ranges::includes(joined, awaited);
  joining_for_ += ran;
  if (has_all_edges_ || joining_for_ < options_.join_time) return;
  std::vector<bool> present(static_cast<std::size_t>(size()), true);
  for (const int rank : awaited) present[static_cast<std::size_t>(rank)] = joined.contains(rank);
  learn({ErrorKind::timeout,
         fmt::format("{} did not connect to rank {}", connect::rendezvous::missing_ranks(present), options_.rank),
         {.rank = options_.rank}},
        options_.rank);
}

void ControlProtocol::dispatch(std::span<const socket::Ready> ready) {
  for (const socket::Ready& one : ready) {
    if (one.key >= connect::Acceptor::kFirstKey)
      acceptor_.on_ready(one);
    else
      tree_.on_ready(one);
  }
}

void ControlProtocol::run_orders() {
  for (const Order& order : orders_.with([](auto& orders) { return std::exchange(orders, {}); })) {
    if (order.kind != Order::Kind::ask && order.peer > options_.rank) {
      awaited_links_.insert(order.peer);
    } else if (order.kind == Order::Kind::connect_data) {
      for (std::uint32_t stream = 0; stream < options_.streams; ++stream)
        acceptor_.call(options_.addresses[static_cast<std::size_t>(order.peer)], options_.source,
                       hello(connect::Purpose::data, order.peer, stream));
    } else if (order.kind == Order::Kind::connect_memory) {
      acceptor_.call(options_.memory_sockets[static_cast<std::size_t>(order.peer)], {},
                     hello(connect::Purpose::memory, order.peer, 0));
    } else {
      tree_.flood(encode(Question{options_.rank, order.peer, order.number}));
      questions_.push_back({order.peer, order.number, now() + kAnswerTime});
    }
  }
}

void ControlProtocol::take_connections() {
  for (connect::Connection& connection : acceptor_.connections()) take(std::move(connection));
  for (const connect::Refusal& refusal : acceptor_.refusals()) take(refusal);
}

bool ControlProtocol::is_near(int rank) const noexcept {
  return options_.memory_sockets[static_cast<std::size_t>(rank)].size() != 0;
}

/// Whether that rank makes no more connections for data or memory.
bool ControlProtocol::has_links(int rank) const {
  if (is_near(rank)) return memory_links_.contains(rank);
  const auto first = data_links_.lower_bound({rank, 0});
  return std::distance(first, data_links_.lower_bound({rank + 1, 0})) == options_.streams;
}

/// A caller that this rank does not await may be a stranger: for its sake no group fails.
bool ControlProtocol::awaits_callers() const {
  return is_joining() || std::ranges::any_of(awaited_links_, [&](int rank) { return !has_links(rank); });
}

/// The higher rank of a pair calls: once for an edge of the tree, which may be needed when others leave, and for data
/// at the first listener, or for memory at the second. A listener is closed when no rank can call there any more.
void ControlProtocol::close_listeners() {
  const std::set<int> joined = joined_.with([](const std::set<int>& ranks) { return ranks; });
  bool may_call = false, may_share = false;
  for (int rank = options_.rank + 1; rank < size() && !(may_call && may_share); ++rank) {
    if (state_.has_left(rank)) continue;
    const bool may_link = !has_links(rank);
    may_call = may_call || !joined.contains(rank) || (may_link && !is_near(rank));
    may_share = may_share || (may_link && is_near(rank));
  }
  if (!may_call) acceptor_.close(0);
  if (!may_share) acceptor_.close(1);
}

void ControlProtocol::take(const connect::Refusal& refusal) {
  if (refusal.caller >= 0) return;  // settings are equal since the rendezvous: it is not trusted, and will be missed
  const connect::Hello& mine = refusal.mine;
  if (mine.purpose == connect::Purpose::control && state_.has_left(mine.to)) return;
  const bool may_come = mine.purpose == connect::Purpose::control && tree_.expected().contains(mine.to);
  if (refusal.cause == connect::Handshake::Cause::no_socket && !may_come) return ran_out_of_sockets(refusal.reason);
  if (mine.purpose == connect::Purpose::data) return mailbox_->deliver({mine.to, mine.stream, {}, refusal.reason});
  if (mine.purpose == connect::Purpose::memory) return mailbox_->deliver_memory({mine.to, 0, {}, refusal.reason});
  // It may have left too, with its goodbye still in flight. If it is lost, `age` reports it.
  if (may_come) {
    call_again_.insert(mine.to);
    call_again_at_ = now() + kBetweenCalls;
    return;
  }
  lost(mine.to, "cannot be reached at " + refusal.reason);
}

void ControlProtocol::take(connect::Connection connection) {
  if (assign(connection)) return;
  options_.log.write(LogLevel::info, fmt::format("rank {} closed a needless connection from rank {}", options_.rank,
                                                 connection.hello.from));
}

/// Gives a connection to the tree or the mailbox; false if this rank does not need it.
bool ControlProtocol::assign(connect::Connection& connection) {
  const connect::Hello& hello = connection.hello;
  const int rank = hello.from;
  const bool known = rank >= 0 && rank < size() && rank != options_.rank;
  // The higher rank of a pair connects.
  const bool right_way = known && (connection.called ? rank < options_.rank : rank > options_.rank);
  const bool near = socket::local_address(connection.channel.socket()).family() == AF_UNIX;
  if (!right_way || near != (hello.purpose == connect::Purpose::memory)) return false;
  if (hello.purpose == connect::Purpose::control) {
    // Any higher rank may connect: it may know of departed ranks of which this one does not know yet.
    if (!tree_.attach(rank, std::move(connection.channel))) return false;
    catch_up(rank);
    regroup();
    close_listeners();
    return true;
  }
  if (hello.purpose == connect::Purpose::data && hello.stream < options_.streams &&
      data_links_.emplace(rank, hello.stream).second) {
    close_listeners();
    mailbox_->deliver({rank, hello.stream, std::move(connection.channel), {}});
    return true;
  }
  if (!near || !is_near(rank) || !memory_links_.insert(rank).second) return false;
  close_listeners();
  mailbox_->deliver_memory({rank, 0, std::move(connection.channel), {}});
  return true;
}

/// Sends a new neighbour the farewells and the failure that crossed the tree before its edge existed.
void ControlProtocol::catch_up(int rank) {
  for (const auto& [gone, number] : state_.departed()) tree_.send(rank, encode(Goodbye{gone, number}));
  if (spread_)
    tree_.send(rank, encode(*state_.failure()));
  else if (leaves())
    tree_.send(rank, encode(own_goodbye()));
  joined_.change([&](auto& joined) { joined.insert(rank); });
}

void ControlProtocol::read_tree() {
  for (const TreeEdges::Received& received : tree_.received()) receive(received.rank, received.message);
  for (const TreeEdges::Lost& gone : tree_.lost())
    if (!state_.has_left(gone.rank)) lost(gone.rank, gone.reason);
}

void ControlProtocol::receive(int from, const std::string& bytes) {
  try {
    std::visit([&](const auto& message) { take(from, message); }, decode_message(bytes));
  } catch (const Corrupt& corrupt) {
    tree_.detach(from);
    learn({ErrorKind::corrupt,
           fmt::format("rank {} sent nonsense: {}", from, corrupt.what()),
           {options_.rank, from, {}, {}}},
          from);
  }
}

void ControlProtocol::take(int from, const Heartbeat& beat) {
  Heartbeat received = beat;
  received.mine.rank = from;  // a neighbour reports only for itself
  if (const auto wrong = state_.receive(from, received)) learn(*wrong, options_.rank);
}

void ControlProtocol::take(int from, const Failure& failure) {
  learn(failure, from);
  spread_failure(from);
}

void ControlProtocol::repeat_calls() {
  call_again_at_ = base::kNever;
  for (const int rank : std::exchange(call_again_, {}))
    if (tree_.expected().contains(rank)) call(rank);
}

void ControlProtocol::take(int from, const Question& question) {
  if (question.to != options_.rank) return relay(from, question);
  tree_.flood(
      encode(Reply{options_.rank, question.from, question.number, state_.text_of(question.number), state_.progress()}));
}

void ControlProtocol::take(int from, const Reply& reply) {
  if (reply.to != options_.rank) return relay(from, reply);
  const auto asked = std::find_if(questions_.begin(), questions_.end(), [&](const OpenQuestion& question) {
    return question.peer == reply.from && question.number == reply.number;
  });
  if (asked == questions_.end()) return;
  questions_.erase(asked);
  Progress theirs{reply.from, reply.number, reply.text};
  if (theirs.text.empty() && reply.last.number > 0)
    theirs.text = fmt::format("{} as operation {}, its last", reply.last.text, reply.last.number);
  learn(mismatch_between(reply.number, {options_.rank, reply.number, state_.text_of(reply.number)}, theirs),
        options_.rank);
}

void ControlProtocol::relay(int from, const Message& message) {
  if (relayed_.size() == kMostRelayed)
    throw Corrupt(fmt::format("more than {} relayed control messages", kMostRelayed));
  const std::string bytes = encode(message);
  if (relayed_.insert(bytes).second) tree_.flood(bytes, from);
}

void ControlProtocol::expire_questions(base::Time at) {
  std::erase_if(questions_, [&](const OpenQuestion& question) {
    if (question.deadline > at) return false;
    const Progress mine{options_.rank, question.number, state_.text_of(question.number)};
    learn(
        mismatch_between(question.number, mine, {question.peer, question.number, "something else (it gave no answer)"}),
        options_.rank);
    return true;
  });
}

void ControlProtocol::tick() {
  if (const auto wrong = state_.compare()) learn(*wrong, options_.rank);
  spread_failure(-1);
  for (const int rank : tree_.ranks()) tree_.send_if_idle(rank, encode(state_.heartbeat_for(rank)));
}

void ControlProtocol::spread_failure(int except) {
  if (spread_ || !state_.failed()) return;
  spread_ = true;
  tree_.flood(encode(*state_.failure()), except);
}

}  // namespace syncopate::transport::membership
