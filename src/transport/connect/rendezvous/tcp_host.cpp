// TcpHost: the listening side of a rendezvous over TCP (rank 0).
#include "transport/connect/rendezvous/tcp_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {
constexpr auto kFarewell = std::chrono::seconds(2);  // limit of sending the answer while no guest reads
}  // namespace

TcpHost::TcpHost(const TcpMeeting& meeting, const Member& me, std::string mine)
    : me_(me),
      address_(meeting.address.text()),
      log_(meeting.log),
      poller_(*meeting.system),
      acceptor_(poller_, {.rank = 0,
                          .group = 0,
                          .secret = meeting.secret,
                          .tls = meeting.tls ? TlsChoice::on : TlsChoice::off,
                          .log = meeting.log}),
      texts_(static_cast<std::size_t>(me.size)),
      present_(texts_.size()) {
  texts_[0] = std::move(mine);
  present_[0] = true;
  count_ = 1;
  acceptor_.open(socket::listen_on(meeting.address, *meeting.system));
  reserve_ = socket::open_socket(meeting.address, *meeting.system);
}

std::vector<std::string> TcpHost::gather(base::Time deadline) {
  const base::Time begin = now();
  while (count_ < texts_.size()) {
    // Ends shortly before the earliest deadline of a guest, so that every guest learns which ranks are missing.
    const base::Time end = std::min(deadline, earliest_deadline_);
    if (now() >= end)
      fail(ErrorKind::timeout,
           fmt::format("{} did not come to the rendezvous at {} within {:.3g} s", missing_ranks(present_), address_,
                       std::chrono::duration<double>(end - begin).count()));
    step(end);
    if (const std::string why = acceptor_.exhaustion(); !why.empty()) turn_away(why);
  }
  answer_all({.error_kind = {}, .error = {}, .texts = texts_});
  return texts_;
}

/// Answers the callers by the error, one after the other with the descriptor that was kept for this.
void TcpHost::turn_away(const std::string& why) {
  const std::string message = fmt::format("rank 0 at {} {}", address_, why);
  const auto has_asked = [](const auto& guest) { return guest.second.has_request; };
  reserve_ = {};
  std::size_t missing = texts_.size() - 1;
  for (base::Time end = now() + kFarewell; missing > 0 && now() < end;) {
    step(end);
    if (guests_.empty() || !std::ranges::all_of(guests_, has_asked)) continue;
    missing -= std::min(missing, guests_.size());
    answer_all({.error_kind = ErrorKind::remote_failure, .error = message, .texts = {}});
    end = now() + kFarewell;
  }
  throw SystemFailure(message, {.rank = 0});
}

void TcpHost::step(base::Time deadline) {
  for (const socket::Ready& ready : poller_.wait(std::min(deadline, acceptor_.next_deadline()))) {
    if (ready.key >= Acceptor::kFirstKey) {
      acceptor_.on_ready(ready);
    } else if (const auto guest = guests_.find(ready.key); guest != guests_.end()) {
      read_request(guest);
    }
  }
  acceptor_.expire(now());
  admit();
}

void TcpHost::admit() {
  for (const Refusal& refusal : acceptor_.refusals())
    fail(ErrorKind::misuse, fmt::format("rank {} cannot join rank 0: {}", refusal.caller, refusal.reason));
  for (Connection& connection : acceptor_.connections()) {
    if (connection.hello.purpose != Purpose::rendezvous) continue;
    const std::uint64_t key = next_key_++;
    socket::FramedChannel channel(std::move(connection.channel), most_answer_bytes(me_.size));
    const auto [guest, fresh] = guests_.emplace(key, Guest{std::move(channel), connection.hello.from});
    poller_.add(guest->second.channel.socket(), key, EPOLLIN);
  }
}

void TcpHost::read_request(Guests::iterator entry) {
  Guest& guest = entry->second;
  std::vector<std::string> messages;
  bool alive = true;
  try {
    alive = guest.channel.read(messages);
    for (const std::string& message : messages) accept_request(guest, decode_request(message));
  } catch (const Corrupt& corrupt) {
    log_.write(LogLevel::info, fmt::format("rendezvous: cut off a caller: {}", corrupt.what()));
    alive = false;
  }
  if (!alive) dismiss(entry);
}

void TcpHost::accept_request(Guest& guest, const Request& request) {
  const int rank = guest.rank;
  if (guest.has_request) throw Corrupt("a second request");
  if (request.size != me_.size)
    fail(ErrorKind::misuse,
         fmt::format("rank {} has a job of {} ranks, rank 0 one of {}", rank, request.size, me_.size));
  if (rank < 1 || rank >= me_.size)
    fail(ErrorKind::misuse, fmt::format("a process joined as rank {} of {}", rank, me_.size));
  const auto index = static_cast<std::size_t>(rank);
  guest.has_request = true;
  if (present_[index]) fail(ErrorKind::misuse, fmt::format("two processes joined as rank {}", rank));
  texts_[index] = request.text;
  present_[index] = true;
  ++count_;
  const auto patience = std::chrono::milliseconds(std::clamp<std::int64_t>(request.patience_ms, 0, 1LL << 40));
  earliest_deadline_ = std::min(earliest_deadline_, now() + patience);
}

/// A process that ended while it waited is missing again: a restarted one may take its place.
void TcpHost::dismiss(Guests::iterator entry) {
  poller_.remove(entry->second.channel.socket());
  if (entry->second.has_request) {
    present_[static_cast<std::size_t>(entry->second.rank)] = false;
    --count_;
  }
  guests_.erase(entry);
}

void TcpHost::answer_all(const Answer& answer) {
  const std::string message = encode(answer);
  for (auto& [key, guest] : guests_) guest.channel.queue(message);
  base::Time end = now() + kFarewell;
  while (!guests_.empty() && now() < end) {
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const bool alive = guest->second.channel.flush();
      if (alive && !guest->second.channel.idle()) {
        poller_.change(guest->second.channel.socket(), guest->first, EPOLLOUT);
        ++guest;
      } else {
        guest = guests_.erase(guest);
      }
    }
    if (guests_.empty()) break;
    for (const socket::Ready& ready : poller_.wait(end)) {
      if (ready.key >= Acceptor::kFirstKey)
        acceptor_.on_ready(ready);  // strangers and late callers get no answer, and use none of the guests' time
      else
        end = now() + kFarewell;
    }
  }
}

void TcpHost::fail(ErrorKind kind, const std::string& message) {
  answer_all({.error_kind = kind, .error = message, .texts = {}});
  raise_error(kind, message, {.rank = 0});
}

}  // namespace syncopate::transport::connect::rendezvous
