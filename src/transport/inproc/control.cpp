// Control between ranks of one process: compares their calls, and passes on the first failure.
#include "transport/inproc/control.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::transport::inproc {

namespace {

constexpr std::size_t kAgreements = 1024, kMessages = 64;

/// The call of a rank under that number. For a message that it has not begun: its last operation.
const membership::OperationRecord& called(const Hub& hub, int rank, std::uint64_t number)
    SYNCOPATE_REQUIRES(hub.mutex) {
  const auto& messages = hub.messages[static_cast<std::size_t>(rank)];
  const auto found = std::ranges::find(messages, number, &membership::OperationRecord::number);
  return found != messages.end() ? *found : hub.begun[static_cast<std::size_t>(rank)];
}

membership::Failure disagreement(const membership::OperationRecord& mine, int my_rank,
                                 const membership::OperationRecord& other, int other_rank) {
  return {ErrorKind::mismatch,
          fmt::format("{}: rank {} called {}; rank {} called {}", membership::text_of_number(mine.number), my_rank,
                      mine.text, other_rank, other.text),
          Where{my_rank, other_rank, mine.text, ""}};
}

/// The failure that a rank has begun an operation in which a rank that left took no part, if one has.
std::optional<membership::Failure> absence(const Hub& hub) SYNCOPATE_REQUIRES(hub.mutex) {
  for (std::size_t gone = 0; gone < hub.left.size(); ++gone)
    for (std::size_t rank = 0; hub.left[gone] && rank < hub.left.size(); ++rank) {
      if (hub.left[rank] || hub.begun[rank].number <= hub.begun[gone].number) continue;
      return membership::Failure{ErrorKind::peer_lost,
                                 fmt::format("rank {} left the group after operation {}", gone, hub.begun[gone].number),
                                 Where{static_cast<int>(rank), static_cast<int>(gone), hub.begun[rank].text, ""}};
    }
  return std::nullopt;
}

}  // namespace

std::optional<membership::Failure> InprocControl::failure() const {
  const base::Lock lock(hub_->mutex);
  return hub_->failure;
}

void InprocControl::report(membership::Failure failure) {
  {
    const base::Lock lock(hub_->mutex);
    if (hub_->failure) return;
    hub_->failure = std::move(failure);
    hub_->failed.store(true, std::memory_order_release);
  }
  for (Mailbox& mailbox : hub_->mailboxes) mailbox.change([](Mailbox&) {});
}

void InprocControl::began(const membership::OperationRecord& record) {
  std::optional<membership::Failure> found;
  {
    const base::Lock lock(hub_->mutex);
    if (membership::is_message(record.number)) {
      auto& latest = hub_->messages[static_cast<std::size_t>(rank_)];
      latest.push_back(record);
      if (latest.size() > kMessages) latest.pop_front();
      return;
    }
    hub_->begun[static_cast<std::size_t>(rank_)] = record;
    const auto [agreement, is_first] = hub_->agreements.try_emplace(record.number, Agreement{record, rank_});
    if (hub_->agreements.size() > kAgreements) hub_->agreements.erase(hub_->agreements.begin());
    if (!is_first && agreement->second.record.common() != record.common())
      found = disagreement(agreement->second.record, agreement->second.rank, record, rank_);
    else if (hub_->is_incomplete)
      found = absence(*hub_);
  }
  if (found) report(std::move(*found));
}

bool InprocControl::has_left(int peer) const {
  const base::Lock lock(hub_->mutex);
  return hub_->left[static_cast<std::size_t>(peer)];
}

void InprocControl::leave() {
  std::optional<membership::Failure> found;
  {
    const base::Lock lock(hub_->mutex);
    hub_->left[static_cast<std::size_t>(rank_)] = true;
    hub_->is_incomplete = true;
    found = absence(*hub_);
  }
  if (found) return report(std::move(*found));
  for (Mailbox& mailbox : hub_->mailboxes) mailbox.change([](Mailbox&) {});  // a rank may wait for this one's message
}

void InprocControl::mismatch(int peer, std::uint64_t number) {
  membership::OperationRecord mine, other;
  {
    const base::Lock lock(hub_->mutex);
    mine = called(*hub_, rank_, number);
    other = called(*hub_, peer, number);
  }
  mine.number = number;
  report(disagreement(mine, rank_, other, peer));
}

std::string InprocControl::laggards(std::uint64_t number) const {
  const base::Lock lock(hub_->mutex);
  std::string text;
  if (membership::is_message(number)) return text;
  for (std::size_t rank = 0; rank < hub_->begun.size(); ++rank) {
    const membership::OperationRecord& record = hub_->begun[rank];
    if (record.number >= number) continue;
    text += fmt::format("{}rank {} has not begun it (its last: {})", text.empty() ? "" : ", ", rank,
                        record.number == 0 ? "none" : record.text);
  }
  return text;
}

}  // namespace syncopate::transport::inproc
