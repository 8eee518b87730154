// Snapshots as sealed files: written whole, and read only if no byte has changed.
#include "server/snapshot/snapshot_file.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/wire.hpp"
#include "server/message.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::server {

namespace {

constexpr std::string_view kMagic = "SYNCSNP3";
constexpr std::string_view kWhat = "snapshot of a server";

/// The images share the file's memory.
Snapshot parsed(Sealed given) {
  const auto owner = std::make_shared<const Sealed>(std::move(given));
  const Sealed& sealed = *owner;
  base::WireReader header(sealed.header);
  Snapshot snapshot{.server = header.number<std::uint64_t>(), .step = header.number<Clock>()};
  snapshot.setup = Setup::of(header.text(kMostBodyBytes));
  header.end();
  if (snapshot.step <= 0 || snapshot.server >= snapshot.setup.servers) header.refuse("step or server out of range");
  for (auto rest = sealed.payload; !rest.empty();) {
    std::uint64_t length = 0;
    if (rest.size() < sizeof length) header.refuse("it ends too early");
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    if (length > rest.size()) header.refuse("an image is longer than the file");
    snapshot.images.push_back({owner, std::as_bytes(rest.first(length))});
    rest = rest.subspan(length);
  }
  return snapshot;
}

Snapshot named(Sealed sealed, const std::string& file) {
  try {
    return parsed(std::move(sealed));
  } catch (const Corrupt& error) {
    throw Corrupt(fmt::format("{} is damaged: {}", file, error.what()));
  }
}

}  // namespace

void write_snapshot(const std::string& file, const Snapshot& snapshot) {
  base::WireWriter header;
  header.number(std::uint64_t{snapshot.server});
  header.number(snapshot.step);
  header.text(snapshot.setup.bytes(), kMostBodyBytes);
  std::vector<std::uint64_t> lengths;
  lengths.reserve(snapshot.images.size());  // spans point into it
  std::vector<std::span<const std::byte>> parts;
  for (const Payload& image : snapshot.images) {
    lengths.push_back(image.bytes.size());
    parts.push_back(std::as_bytes(std::span(&lengths.back(), 1)));
    parts.push_back(image.bytes);
  }
  write_sealed(file, kMagic, header.take(), parts);
}

Snapshot read_snapshot(const std::string& file) { return named(read_sealed(file, kMagic, kWhat), file); }

Snapshot snapshot_of(std::vector<std::uint8_t> bytes, const std::string& file) {
  return named(parse_sealed(std::move(bytes), file, {kMagic, kWhat}), file);
}

}  // namespace syncopate::server
