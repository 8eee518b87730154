// TcpCaller: the connecting side of a rendezvous over TCP (every rank but 0).
#include "transport/connect/rendezvous/tcp_caller.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {
constexpr auto kFirstPause = std::chrono::milliseconds(5), kLongestPause = std::chrono::milliseconds(200);
constexpr auto kGrace = std::chrono::seconds(1);  // time for rank 0's answer that names the missing ranks
constexpr std::uint64_t kKey = 1;
}  // namespace

TcpCaller::TcpCaller(const TcpMeeting& meeting, const Member& me, std::string mine)
    : meeting_(meeting),
      me_(me),
      mine_(std::move(mine)),
      poller_(*meeting.system),
      acceptor_(poller_, {.rank = me.rank,
                          .group = 0,
                          .secret = meeting.secret,
                          .tls = meeting.tls ? TlsChoice::on : TlsChoice::off,
                          .patience = std::chrono::seconds(5),
                          .log = {}}) {}

std::vector<std::string> TcpCaller::ask(base::Time deadline) {
  connect(deadline);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now());
  channel_->queue(encode(Request{me_.size, left.count(), mine_}));
  poller_.add(channel_->socket(), kKey, EPOLLIN);
  const base::Time end = deadline == base::kNever ? deadline : deadline + kGrace;
  std::vector<std::string> messages;
  bool alive = channel_->flush();
  while (alive && messages.empty() && now() < end) {
    std::ignore = poller_.wait(channel_->idle() ? end : std::min(end, now() + kFirstPause));
    alive = channel_->flush() && channel_->read(messages);
  }
  if (!messages.empty()) return conclude(decode_answer(messages.front()));
  if (!alive)
    throw PeerLost(fmt::format("rank 0 ended during the rendezvous: {}", channel_->reason()), {me_.rank, 0, {}, {}});
  give_up("it did not answer");
}

void TcpCaller::connect(base::Time deadline) {
  for (auto pause = kFirstPause; !try_once(deadline); pause = std::min(pause * 2, kLongestPause)) {
    if (now() + pause >= deadline || now() - kPatienceWithout >= no_socket_since_) give_up(last_refusal_);
    rest(now() + pause);  // rank 0 may not listen yet
  }
}

/// Waits while no call is in progress: only time can pass.
void TcpCaller::rest(base::Time until) {
  while (now() < until) std::ignore = poller_.wait(until);
}

bool TcpCaller::try_once(base::Time deadline) {
  const Hello mine{.version = {}, .purpose = Purpose::rendezvous, .group = 0, .from = me_.rank, .to = 0};
  acceptor_.call(meeting_.address, {}, mine);
  for (;;) {
    for (Connection& connection : acceptor_.connections()) {
      channel_.emplace(std::move(connection.channel), most_answer_bytes(me_.size));
      no_socket_since_ = base::kNever;
      return true;
    }
    for (const Refusal& refusal : acceptor_.refusals()) {
      last_refusal_ = refusal.reason;
      const bool has_no_socket = refusal.cause == Handshake::Cause::no_socket;
      no_socket_since_ = has_no_socket ? std::min(no_socket_since_, now()) : base::kNever;
      const std::string message = "rank 0 at " + refusal.reason;
      if (refusal.cause == Handshake::Cause::unauthorized) throw Unauthorized(message, {me_.rank, 0, {}, {}});
      if (refusal.cause == Handshake::Cause::version || refusal.cause == Handshake::Cause::tls)
        throw Misuse(message, {me_.rank, 0, {}, {}});
      return false;
    }
    for (const socket::Ready& ready : poller_.wait(std::min(deadline, acceptor_.next_deadline())))
      acceptor_.on_ready(ready);
    // The call in progress ends with this rank's own deadline.
    acceptor_.expire(now() >= deadline ? base::kNever : now());
  }
}

std::vector<std::string> TcpCaller::conclude(const Answer& answer) const {
  if (answer.error_kind) raise_error(*answer.error_kind, answer.error, {.rank = me_.rank});
  if (answer.texts.size() != static_cast<std::size_t>(me_.size))
    throw Corrupt("rank 0 sent the texts of another number of ranks");
  return answer.texts;
}

void TcpCaller::give_up(const std::string& why) const {
  if (no_socket_since_ != base::kNever)
    throw SystemFailure(fmt::format("rank {} {}", me_.rank, why), {.rank = me_.rank});
  throw Timeout(fmt::format("rank 0 did not come to the rendezvous at {} ({})", meeting_.address.text(), why),
                {me_.rank, 0, {}, {}});
}

}  // namespace syncopate::transport::connect::rendezvous
