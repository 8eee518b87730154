// A rank's entry at the rendezvous, also after a valid version.
#include "transport/connect/peer_info.hpp"

#include "fuzz/target.hpp"
#include "syncopate/version.hpp"

namespace syncopate::fuzz::target {

using namespace transport::connect;

void peer_info(Input input) {
  Fields fields(input);
  std::string text;
  if (fields.take<std::uint8_t>() % 2 == 0) {
    const auto bytes = static_cast<std::uint32_t>(version().size());
    text.append(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(version());
  }
  text += text_of(fields.rest());
  may_refuse<Misuse, Corrupt>([&] {
    const PeerInfo found = decode_peer_info(text, 1);
    const std::string again = encode(found);
    hold(encode(decode_peer_info(again, 1)) == again, "what was taken travels unchanged");
    require_reachable({.host = "another"}, found, 1);
  });
}

}  // namespace syncopate::fuzz::target
