// FramedChannel: length-prefixed messages of bounded size over a channel, never blocking.
#include "transport/socket/framed_channel.hpp"

#include <fmt/format.h>

#include <array>

#include "base/bytes.hpp"
#include "base/require.hpp"

namespace syncopate::transport::socket {

namespace {
constexpr std::size_t kPrefix = sizeof(std::uint32_t);
constexpr int kMostPieces = 16;  // a writer without pauses must not keep the reader from other connections
}  // namespace

void FramedChannel::queue(std::string_view message) {
  base::require(message.size() <= most_bytes_, "a message has {} bytes; at most {} are allowed", message.size(),
                most_bytes_);
  const auto size = static_cast<std::uint32_t>(message.size());
  out_.append(reinterpret_cast<const char*>(&size), kPrefix);
  out_.append(message);
}

bool FramedChannel::flush() {
  while (!out_.empty()) {
    const Moved moved = channel_.write(std::as_bytes(std::span(out_)));
    if (moved.outcome == Moved::Outcome::closed) {
      reason_ = reason_of(moved);
      return false;
    }
    if (moved.outcome == Moved::Outcome::nothing_now) break;
    out_.erase(0, moved.bytes);
  }
  return true;
}

bool FramedChannel::read(std::vector<std::string>& messages) {
  const std::size_t before = messages.size();
  std::array<std::byte, 4096> piece;
  for (int pieces = 0; pieces < kMostPieces || channel_.has_unread(); ++pieces) {
    const Moved moved = channel_.read(std::span<std::byte>(piece));
    if (moved.outcome == Moved::Outcome::closed) {
      if (messages.size() > before) return true;
      reason_ = reason_of(moved);
      return false;
    }
    in_.append(reinterpret_cast<const char*>(piece.data()), moved.bytes);
    take_messages(messages);
    if (!moved.more) break;
  }
  return true;
}

void FramedChannel::take_messages(std::vector<std::string>& messages) {
  std::size_t at = 0;
  while (in_.size() - at >= kPrefix) {
    const auto size = base::get<std::uint32_t>(std::as_bytes(std::span(in_)), at);
    if (size > most_bytes_) throw Corrupt(fmt::format("a message has {} bytes; the limit is {}", size, most_bytes_));
    if (in_.size() - at - kPrefix < size) break;
    messages.emplace_back(in_, at + kPrefix, size);
    at += kPrefix + size;
  }
  in_.erase(0, at);
}

}  // namespace syncopate::transport::socket
