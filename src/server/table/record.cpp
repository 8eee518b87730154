// Records as bytes: a record whose body is longer than a message's is sent in parts.
#include "server/table/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {
constexpr std::size_t kEvent = 1, kIsLast = 2, kZero = 3, kWorker = 4, kNumber = 8, kMessage = 16;
}  // namespace

std::array<std::byte, kRelayedHeadBytes> head_of(const Relayed& relayed) {
  std::array<std::byte, kRelayedHeadBytes> head{};
  head[0] = static_cast<std::byte>(relayed.kind);
  head[kEvent] = static_cast<std::byte>(relayed.event);
  head[kIsLast] = static_cast<std::byte>(relayed.is_last);
  base::put(head, kWorker, relayed.worker);
  base::put(head, kNumber, relayed.number);
  std::ranges::copy(head_of(relayed.message), head.begin() + kMessage);
  return head;
}

Relayed relayed_of(Payload bytes) {
  const base::ConstBytes all = bytes.bytes;
  if (all.size() < kRelayedHeadBytes) throw Corrupt(fmt::format("a message between servers has {} bytes", all.size()));
  const auto kind = static_cast<RelayKind>(all[0]);
  const auto event = static_cast<Event>(all[kEvent]);
  const bool is_known = kind >= RelayKind::claim && kind <= RelayKind::occupied && event >= Event::setup &&
                        event <= Event::come_back_rows && all[kIsLast] <= std::byte{1} && all[kZero] == std::byte{};
  if (!is_known)
    throw Corrupt(fmt::format("a message between servers has kind {} and event {}", static_cast<int>(all[0]),
                              static_cast<int>(all[kEvent])));
  Relayed relayed{.kind = kind,
                  .event = event,
                  .is_last = all[kIsLast] == std::byte{1},
                  .worker = base::get<std::uint32_t>(all, kWorker),
                  .number = base::get<std::uint64_t>(all, kNumber)};
  relayed.message = message_of({std::move(bytes.owner), all.subspan(kMessage)}, true);
  return relayed;
}

void each_part(const Record& record, const std::function<void(Relayed)>& take) {
  Relayed part{.kind = RelayKind::record,
               .event = record.event,
               .worker = static_cast<std::uint32_t>(record.worker),
               .number = record.sequence,
               .message = record.message};
  base::ConstBytes rest = record.message.body.bytes;
  do {
    const std::size_t length = std::min(rest.size(), kMostBodyBytes);
    part.message.body.bytes = rest.first(length);
    rest = rest.subspan(length);
    part.is_last = rest.empty();
    take(part);
  } while (!rest.empty());
}

bool RecordReader::take(Relayed part, Record& record) {
  const base::ConstBytes bytes = part.message.body.bytes;
  if (body_.size() + bytes.size() > most_bytes_)
    throw Corrupt(fmt::format("a record has more than {} bytes", most_bytes_));
  if (!part.is_last || !body_.empty()) body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!part.is_last) return false;
  record = {.sequence = part.number, .event = part.event, .worker = part.worker, .message = std::move(part.message)};
  if (body_.empty()) return true;  // a single part, which is not copied
  record.message.body = payload_of(std::exchange(body_, {}));
  return true;
}

}  // namespace syncopate::server
