// Snapshots of servers: sealed files, most of them with a hash that fits; what is read is written in the same bytes.
#include <xxhash.h>

#include "fuzz/target.hpp"
#include "server/snapshot/snapshot_file.hpp"

namespace syncopate::fuzz::target {

void snapshot(Input input) {
  Fields fields(input);
  const auto choice = fields.take<std::uint8_t>();
  std::string bytes = choice % 4 == 0 ? "SYNCSNP3" : "SYNCSNP1";
  const std::uint64_t header = choice < 128 ? fields.take<std::uint16_t>() : fields.take<std::uint64_t>();
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text_of(fields.rest());
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  if (choice % 8 != 1) bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
  may_refuse<Corrupt>([&] {
    const server::Snapshot found = server::snapshot_of({bytes.begin(), bytes.end()}, "file");
    std::size_t images = 0;
    for (const server::Payload& image : found.images) images += image.bytes.size() + 8;
    hold(images + header + 24 == bytes.size(), "every byte has its place");
    hold(found.step > 0 && found.server < found.setup.servers, "a step and a server that are possible");
  });
}

}  // namespace syncopate::fuzz::target
