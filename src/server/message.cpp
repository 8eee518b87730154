// Messages as bytes: a kind byte, seven bytes that are zero or hold the block, six numbers of eight bytes, the body.
#include "server/message.hpp"

#include <fmt/format.h>

#include <bit>

#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kBlock = 4, kFirst = 8, kLast = 16, kLeast = 24, kRate = 32, kVersion = 40, kStep = 48;

Clock clock_at(base::ConstBytes bytes, std::size_t offset) {
  const auto clock = base::get<Clock>(bytes, offset);
  if (clock < 0 || clock > kMostClock) throw Corrupt(fmt::format("a message has the clock {}", clock));
  return clock;
}

bool is_known(MessageKind kind, bool from_worker) {
  return from_worker ? kind >= MessageKind::setup && kind <= MessageKind::visit_rows
                     : kind >= MessageKind::welcome && kind <= MessageKind::visited;
}

}  // namespace

std::array<std::byte, kHeadBytes> head_of(const Message& message) {
  std::array<std::byte, kHeadBytes> head{};
  head[0] = static_cast<std::byte>(message.kind);
  base::put(head, kBlock, message.block);
  base::put(head, kFirst, message.first);
  base::put(head, kLast, message.last);
  base::put(head, kLeast, message.least);
  base::put(head, kRate, std::bit_cast<std::uint64_t>(message.rate));
  base::put(head, kVersion, message.version);
  base::put(head, kStep, message.step);
  return head;
}

Message message_of(Payload bytes, bool from_worker) {
  const base::ConstBytes all = bytes.bytes;
  if (all.size() < kHeadBytes || all.size() > kHeadBytes + kMostBodyBytes)
    throw Corrupt(
        fmt::format("a message has {} bytes; allowed: {} to {}", all.size(), kHeadBytes, kHeadBytes + kMostBodyBytes));
  const auto kind = static_cast<MessageKind>(all[0]);
  if (!is_known(kind, from_worker) || all[1] != std::byte{} || base::get<std::uint16_t>(all, 2) != 0)
    throw Corrupt(
        fmt::format("a message of kind {} from a {}", static_cast<int>(all[0]), from_worker ? "worker" : "server"));
  Message message{.kind = kind,
                  .block = base::get<std::uint32_t>(all, kBlock),
                  .first = clock_at(all, kFirst),
                  .last = clock_at(all, kLast),
                  .least = clock_at(all, kLeast),
                  .rate = std::bit_cast<double>(base::get<std::uint64_t>(all, kRate)),
                  .version = base::get<std::uint64_t>(all, kVersion),
                  .step = clock_at(all, kStep)};
  message.body = {std::move(bytes.owner), all.subspan(kHeadBytes)};
  return message;
}

}  // namespace syncopate::server
