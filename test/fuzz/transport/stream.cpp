// A data connection of TCP: frames that fit what is awaited, frames that do not, and noise.
#include "transport/tcp/stream.hpp"

#include <sys/epoll.h>

#include "fuzz/target.hpp"
#include "fuzz/transport/ends.hpp"

namespace syncopate::fuzz::target {

using namespace transport;

namespace {

const tcp::FrameRules kRules{.group = 7};

Label label_of(Fields& fields) {
  const auto byte = fields.take<std::uint8_t>();
  return {std::uint64_t{5} + byte % 2, 9, byte >= 128};
}

/// A frame whose header is right in itself.
std::vector<std::byte> frame_of(Fields& fields) {
  const Label label = label_of(fields);
  const Input payload = fields.take_bytes(fields.take<std::uint16_t>() % 20'000);
  const auto flags = fields.take<std::uint8_t>();
  tcp::Frame frame{.group = flags % 16 == 15 ? 8U : 7U, .label = label, .payload_bytes = payload.size()};
  if (flags >= 64) frame.payload_bytes = fields.take<std::uint64_t>() >> (flags % 64);
  frame.checked = flags % 2 == 1;
  if (frame.checked) frame.checksum = flags % 4 == 1 ? tcp::checksum_of(payload) : 0;
  const tcp::FrameBytes header = encode(frame);
  std::vector<std::byte> bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

std::vector<std::byte> noise_of(Fields& fields) {
  const Input bytes = fields.take_bytes(fields.take<std::uint8_t>());
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void stream(Input input) {
  Ends ends;
  LinkTraffic traffic;
  tcp::Stream stream(1, kRules, traffic);
  stream.attach(std::move(ends.tested));
  std::vector<std::vector<std::byte>> memory;
  std::vector<Event> finished;
  for (Fields fields(input); !fields.empty() && memory.size() < 64;) {
    const auto choice = fields.take<std::uint8_t>();
    if (choice % 4 == 0) {
      memory.emplace_back(fields.take<std::uint16_t>() % 20'000);
      stream.receive(label_of(fields), memory.back(), memory.size());
    } else if (choice % 4 == 1) {
      memory.emplace_back(fields.take<std::uint8_t>());
      stream.send(label_of(fields), memory.back(), memory.size());
    } else if (!ends.send(choice % 4 == 2 ? frame_of(fields) : noise_of(fields))) {
      break;
    }
    if (choice >= 128) stream.note_ready(EPOLLIN);
    stream.advance(choice % 8 < 4, finished);
  }
  ends.peer.close();
  stream.note_ready(EPOLLIN | EPOLLRDHUP);
  stream.advance(true, finished);
  hold(finished.size() <= memory.size(), "a post is finished once");
  stream.announce_whole_frames();
}

}  // namespace syncopate::fuzz::target
