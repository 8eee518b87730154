// Headers of frames, most of them with a checksum that fits.
#include "fuzz/target.hpp"
#include "transport/tcp/stream.hpp"

namespace syncopate::fuzz::target {

void frame(Input input) {
  using namespace transport::tcp;
  constexpr std::size_t kCovered = kFrameHeaderBytes - sizeof(std::uint32_t);
  Fields fields(input);
  const bool is_sealed = fields.take<std::uint8_t>() != 0;
  FrameBytes bytes = encode({});
  for (const std::byte byte : fields.take_bytes(1)) bytes[2] ^= byte;
  const Input rest = fields.take_bytes(bytes.size() - 3);
  std::copy(rest.begin(), rest.end(), bytes.begin() + 3);
  if (is_sealed) base::put(bytes, kCovered, checksum_of(base::ConstBytes(bytes).first(kCovered)));
  may_refuse<Corrupt>([&] {
    const Frame frame = decode(bytes);
    hold(encode(frame) == bytes, "a header has one form");
    hold(frame.payload_bytes <= kMaxPayloadBytes, "a payload has a limit");
  });
}

}  // namespace syncopate::fuzz::target
