// Sealed files, as checkpoints are: most of them with a hash that fits.
#include <xxhash.h>

#include "fuzz/target.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::fuzz::target {

void checkpoint(Input input) {
  Fields fields(input);
  const auto choice = fields.take<std::uint8_t>();
  std::string bytes;
  if (choice % 2 == 0) {
    bytes = "SYNCCKP2";
    const std::uint64_t header = choice < 128 ? fields.take<std::uint16_t>() : fields.take<std::uint64_t>();
    bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  }
  bytes += text_of(fields.rest());
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  if (choice % 4 == 0) bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  may_refuse<Corrupt>([&] {
    const auto found = parse_sealed({bytes.begin(), bytes.end()}, "file", {"SYNCCKP2", "checkpoint"});
    hold(found.header.size() + found.payload.size() + 24 == bytes.size(), "every byte has its place");
  });
}

}  // namespace syncopate::fuzz::target
