// Tar archives: members lie within the archive. Half of the headers get a checksum that fits.
#include "input/tar.hpp"

#include <cstdio>
#include <cstring>

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void tar(Input input) {
  std::string bytes(text_of(input));
  for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    if (bytes[at + 500] != 0) continue;
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(bytes[at + i]);
    if (sum > 8 * ' ') std::snprintf(bytes.data() + at + 148, 8, "%06o", sum & 0777777);
  }
  may_refuse<Corrupt>([&] {
    const auto read = [&](std::uint64_t offset, base::Bytes into) {
      hold(offset <= bytes.size() && into.size() <= bytes.size() - offset, "what is read lies within the archive");
      std::memcpy(into.data(), bytes.data() + offset, into.size());
    };
    for (const auto& member : input::tar::members_of({"archive", bytes.size(), read}))
      hold(member.offset <= bytes.size() && member.bytes <= bytes.size() - member.offset, "a file lies within it");
  });
}

}  // namespace syncopate::fuzz::target
