// Stream: one data connection: queued frames to send, and queued receives in the order of the frames to come.
#include "transport/tcp/stream.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <xxhash.h>

#include <algorithm>

#include "syncopate/error.hpp"
#include "transport/matching.hpp"

namespace syncopate::transport::tcp {

namespace {

constexpr std::uint16_t kMagic = 0x4653;  // "SF"
constexpr std::uint8_t kChecked = 1;
constexpr std::size_t kCovered = kFrameHeaderBytes - sizeof(std::uint32_t);
constexpr int kLengthBits = 48;

template <class... Args>
void check(bool fine, fmt::format_string<Args...> message, Args&&... args) {
  if (!fine) throw Corrupt(fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace

std::uint32_t checksum_of(base::ConstBytes payload) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(payload.data(), payload.size()));
}

FrameBytes encode(const Frame& frame) noexcept {
  FrameBytes bytes{};
  base::put(bytes, 0, kMagic);
  base::put(bytes, 2, kFrameVersion);
  base::put(bytes, 3, static_cast<std::uint8_t>(frame.checked ? kChecked : 0));
  base::put(bytes, 4, frame.group);
  base::put(bytes, 8, frame.label.operation);
  base::put(bytes, 16, frame.label.signature);
  base::put(bytes, 24, std::uint64_t{frame.epoch} << kLengthBits | frame.payload_bytes);
  base::put(bytes, 32, frame.checksum);
  base::put(bytes, kCovered, checksum_of(base::ConstBytes(bytes).first(kCovered)));
  return bytes;
}

Frame decode(const FrameBytes& bytes) {
  const auto magic = base::get<std::uint16_t>(bytes, 0);
  const auto version = base::get<std::uint8_t>(bytes, 2), flags = base::get<std::uint8_t>(bytes, 3);
  check(magic == kMagic, "a frame begins with {:04x} instead of {:04x}", magic, kMagic);
  check(version == kFrameVersion, "a frame has version {} instead of {}", version, kFrameVersion);
  check(base::get<std::uint32_t>(bytes, kCovered) == checksum_of(base::ConstBytes(bytes).first(kCovered)),
        "a frame's header does not match its checksum");
  check((flags & ~kChecked) == 0, "a frame has unknown flags {:02x}", flags);
  const auto epoch_and_length = base::get<std::uint64_t>(bytes, 24);
  const Frame frame{.group = base::get<std::uint32_t>(bytes, 4),
                    .epoch = static_cast<std::uint16_t>(epoch_and_length >> kLengthBits),
                    .label = {base::get<std::uint64_t>(bytes, 8), base::get<std::uint64_t>(bytes, 16)},
                    .payload_bytes = epoch_and_length & ((std::uint64_t{1} << kLengthBits) - 1),
                    .checked = (flags & kChecked) != 0,
                    .checksum = base::get<std::uint32_t>(bytes, 32)};
  check(frame.payload_bytes <= kMaxPayloadBytes, "a frame has {} bytes, more than the limit of {}", frame.payload_bytes,
        kMaxPayloadBytes);
  return frame;
}

void Stream::fail(membership::LinkFailure link_failure) {
  // A frame of another operation only freezes the stream: its sender must learn of the mismatch from control, and must
  // not take a closed connection for this rank's death.
  const bool cut = link_failure.kind == membership::LinkFailure::Kind::lost ||
                   link_failure.kind == membership::LinkFailure::Kind::corrupt;
  if (!link_failure_) link_failure_ = std::move(link_failure);
  if (cut) channel_.close();
}

void Stream::lose(const socket::Moved& moved) {
  using Kind = membership::LinkFailure::Kind;
  fail({moved.error == socket::kForged ? Kind::corrupt : Kind::lost, socket::reason_of(moved), {}});
}

void Stream::send(const Label& label, base::ConstBytes bytes, std::uint64_t token) {
  Frame frame{.group = rules_.half_of_group(), .epoch = rules_.epoch, .label = label, .payload_bytes = bytes.size()};
  frame.checked = rules_.checksum;
  if (frame.checked) frame.checksum = checksum_of(bytes);
  out_.push_back({encode(frame), bytes, token});
}

void Stream::note_ready(std::uint32_t events) noexcept {
  constexpr std::uint32_t kEnd = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
  if ((events & (EPOLLIN | kEnd)) != 0) readable_ = true;
  if ((events & (EPOLLOUT | kEnd)) != 0) writable_ = true;
  if ((events & kEnd) != 0) ended_ = true;
}

void Stream::advance(bool direct, std::vector<Event>& finished) {
  if (!out_.empty() && (writable_ || direct)) push(finished);
  if (in_.empty() || link_failure_) return;
  const std::size_t before = finished.size();
  take_frames(finished);
  if (direct || ended_) readable_ = true;
  while (healthy() && readable_ && !in_.empty() && finished.size() == before) pull(finished);
}

void Stream::announce_whole_frames() noexcept {
  if (in_.empty() || !healthy()) return;
  // Only its own header reveals a shorter pairwise frame: heartbeats compare what all ranks have in common.
  const bool header_counts = in_.front().label.pairwise || reader_.is_in_body();
  const std::size_t rest = reader_.missing() + (header_counts ? 0 : in_.front().into.size());
  channel_.announce_from(std::min(rest, kMostUnannounced));
}

void Stream::push(std::vector<Event>& finished) {
  while (!out_.empty() && healthy()) {
    std::array<iovec, kPiecesPerCall> pieces;
    std::size_t count = 0, bytes = 0, skip = front_sent_;
    for (const Outgoing& frame : out_) {
      if (count + 2 > pieces.size() || bytes >= kBytesPerCall) break;
      const base::ConstBytes header = frame.header;
      if (skip < header.size()) pieces[count++] = socket::piece_of(header.subspan(skip));
      const base::ConstBytes payload = frame.payload.subspan(skip > header.size() ? skip - header.size() : 0);
      if (!payload.empty()) pieces[count++] = socket::piece_of(payload);
      bytes += header.size() + frame.payload.size() - skip;
      skip = 0;
    }
    const socket::Moved moved = channel_.write(std::span(pieces).first(count));
    if (moved.outcome == socket::Moved::Outcome::closed) return lose(moved);
    sent(moved.bytes, finished);
    writable_ = moved.more;
    if (!writable_) return;
  }
}

void Stream::sent(std::size_t bytes, std::vector<Event>& finished) {
  traffic_.sent.add(bytes);
  front_sent_ += bytes;
  while (!out_.empty() && front_sent_ >= kFrameHeaderBytes + out_.front().payload.size()) {
    front_sent_ -= kFrameHeaderBytes + out_.front().payload.size();
    finished.push_back({.token = out_.front().token, .arrival = false, .bytes = {}});
    out_.pop_front();
  }
}

/// One read: the rest of the header, then straight into the posted span, then the following bytes into the tail.
/// Nothing is written outside the span before the header is checked; a frame that does not fit fails the stream.
void Stream::pull(std::vector<Event>& finished) {
  const socket::Moved moved = channel_.read(reader_.pieces(in_.front().into));
  if (moved.outcome == socket::Moved::Outcome::closed) return lose(moved);
  readable_ = moved.more;
  if (moved.bytes == 0) return;
  traffic_.received.add(moved.bytes);
  reader_.filled(moved.bytes);
  take_frames(finished);
}

void Stream::take_frames(std::vector<Event>& finished) {
  using Part = decltype(reader_)::Part;
  while (!in_.empty() && !link_failure_) {
    const Part part = reader_.next();
    if (part == Part::none) return;
    if (part == Part::header)
      header_complete();
    else
      payload_complete(finished);
  }
}

/// Checks the frame against the first receive.
void Stream::header_complete() {
  const Incoming& post = in_.front();
  try {
    frame_ = decode(reader_.header());
  } catch (const Corrupt& corrupt) {
    return fail({membership::LinkFailure::Kind::corrupt, corrupt.what(), {}});
  }
  if (frame_.group != rules_.half_of_group() || frame_.epoch != rules_.epoch)
    return fail({membership::LinkFailure::Kind::corrupt, "a frame of another group", {}});
  if (auto wrong = match({post.label, post.into.size()}, {frame_.label, frame_.payload_bytes}))
    return fail(std::move(*wrong));
  reader_.place(post.into);
}

void Stream::payload_complete(std::vector<Event>& finished) {
  const Incoming post = in_.front();
  if (frame_.checked && checksum_of(post.into) != frame_.checksum)
    return fail({membership::LinkFailure::Kind::corrupt, "a payload does not match its checksum", {}});
  in_.pop_front();
  awaited_bytes_ -= post.into.size();
  finished.push_back({.token = post.token, .arrival = true, .bytes = post.into});
}

}  // namespace syncopate::transport::tcp
