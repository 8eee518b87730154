// Messages with their lengths before them, however they are cut on the way.
#include "fuzz/target.hpp"
#include "fuzz/transport/ends.hpp"
#include "transport/socket/channel.hpp"

namespace syncopate::fuzz::target {

namespace {

/// Those in front of the first that is cut off or too long.
std::vector<std::string> whole_messages(Input bytes, std::size_t most) {
  std::vector<std::string> found;
  for (Fields fields(bytes); fields.rest().size() >= sizeof(std::uint32_t);) {
    const auto size = fields.take<std::uint32_t>();
    if (size > most || size > fields.rest().size()) break;
    found.emplace_back(text_of(fields.take_bytes(size)));
  }
  return found;
}

}  // namespace

void framed_channel(Input input) {
  constexpr std::size_t kMost = 300;
  Fields fields(input);
  const std::size_t piece = 1 + fields.take<std::uint8_t>();
  const std::vector<std::string> expected = whole_messages(fields.rest(), kMost);
  Ends ends;
  transport::socket::FramedChannel channel(std::move(ends.tested), kMost);
  std::vector<std::string> messages;
  may_refuse<Corrupt>([&] {
    while (!fields.empty() && ends.send(fields.take_bytes(piece)))
      hold(channel.read(messages), "an open connection is not gone");
    ends.peer.close();
    hold(!channel.read(messages) || !fields.empty(), "a closed connection is gone");
  });
  hold(messages == expected, "messages arrive whole and in order, until one is too long");
}

}  // namespace syncopate::fuzz::target
