// Reads arrays in the idx format; unzips them by zlib.
#include "input/idx.hpp"

#include <fmt/format.h>

#define ZLIB_CONST  // zlib only reads its input
#include <zlib.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::input::idx {
namespace {

constexpr std::uint64_t kLargestRatio = 1032;  ///< of deflate: 258 bytes for two bits

std::uint32_t word_at(base::ConstBytes bytes, std::size_t offset) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8 | std::to_integer<std::uint32_t>(bytes[offset + i]);
  return word;
}

std::vector<std::uint32_t> sizes_of(base::ConstBytes header, std::size_t dimensions, const std::string& name) {
  if (header.size() < 4 * (1 + dimensions))
    throw Corrupt(fmt::format("{} ends at byte {} of its idx header of {}", name, header.size(), 4 * (1 + dimensions)));
  const auto expected = static_cast<std::uint32_t>(0x800 + dimensions);
  if (const std::uint32_t magic = word_at(header, 0); magic != expected)
    throw Corrupt(fmt::format("{} begins with {:08x}; allowed: {:08x} (idx, unsigned bytes, dimensions: {})", name,
                              magic, expected, dimensions));
  std::vector<std::uint32_t> sizes;
  std::uint64_t values = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    values *= sizes.emplace_back(word_at(header, 4 * (1 + i)));
    if (values > kMostBytes)
      throw Corrupt(fmt::format("{} declares {} at byte {} and so more than 4 GiB of values; allowed: at most 4 GiB",
                                name, sizes.back(), 4 * (1 + i)));
  }
  return sizes;
}

std::uint64_t declared_bytes(const Array& array) {
  std::uint64_t values = 1;
  for (const std::uint32_t size : array.sizes) values *= size;
  return array.header_bytes() + values;
}

[[noreturn]] void refuse_length(const Array& array, std::string_view has, const std::string& name) {
  throw Corrupt(fmt::format("{} {}; allowed: the {} that its header declares ({})", name, has, declared_bytes(array),
                            fmt::join(array.sizes, " x ")));
}

/// The contents of a gzip file, in pieces.
class Unzipper final {
 public:
  Unzipper(base::ConstBytes file, const std::string& name) : name_(name), file_bytes_(file.size()), rest_(file) {
    constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header
    if (inflateInit2(&stream_, kGzip) != Z_OK) throw SystemFailure(fmt::format("cannot unzip {}: no memory", name));
  }
  ~Unzipper() { inflateEnd(&stream_); }
  Unzipper(const Unzipper&) = delete;
  Unzipper& operator=(const Unzipper&) = delete;

  /// Returns the number of bytes read, which is less than `into` has if the contents end.
  std::size_t read(base::Bytes into) {
    std::size_t count = 0;
    while (count < into.size() && !ended_) count += inflate_some(into.subspan(count));
    return count;
  }
  /// Reads the checksum; nothing may follow it.
  void finish(const Array& array) {
    std::byte beyond{};
    if (read({&beyond, 1}) > 0) refuse_length(array, "has more bytes when it is unzipped", name_);
    if (!rest_.empty()) throw Corrupt(fmt::format("{} continues at byte {} after its gzip data", name_, position()));
  }

 private:
  [[nodiscard]] std::size_t position() const { return file_bytes_ - rest_.size(); }

  std::size_t inflate_some(base::Bytes into) {
    constexpr std::size_t kMost = 1U << 30;  // zlib counts in 32 bits
    const std::size_t in = std::min(rest_.size(), kMost), out = std::min(into.size(), kMost);
    stream_.next_in = reinterpret_cast<const Bytef*>(rest_.data());
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(out);
    const int state = inflate(&stream_, Z_NO_FLUSH);
    rest_ = rest_.subspan(in - stream_.avail_in);
    const std::size_t count = out - stream_.avail_out;
    ended_ = state == Z_STREAM_END;
    if (state == Z_MEM_ERROR) throw SystemFailure(fmt::format("cannot unzip {}: no memory", name_));
    if (state == Z_DATA_ERROR)
      throw Corrupt(fmt::format("{} is damaged before byte {} of its gzip data: {}", name_, position(), stream_.msg));
    if (!ended_ && rest_.empty() && count == 0)
      throw Corrupt(fmt::format("{} ends at byte {} within its gzip data", name_, file_bytes_));
    return count;
  }

  const std::string& name_;
  const std::size_t file_bytes_;
  base::ConstBytes rest_;
  z_stream stream_{};
  bool ended_ = false;
};

Array unzipped(base::ConstBytes file, std::size_t dimensions, const std::string& name) {
  Unzipper unzipper(file, name);
  Array array{.sizes = {}, .file = std::vector<std::byte>(4 * (1 + dimensions))};
  array.file.resize(unzipper.read(array.file));
  array.sizes = sizes_of(array.file, dimensions, name);
  const std::uint64_t bytes = declared_bytes(array);
  if (bytes / kLargestRatio > file.size())
    refuse_length(array, fmt::format("has {} compressed bytes, too few", file.size()), name);
  array.file.resize(bytes);
  const std::size_t header = array.header_bytes();
  const std::size_t count = header + unzipper.read(base::Bytes(array.file).subspan(header));
  if (count < bytes) refuse_length(array, fmt::format("unzips to {} bytes", count), name);
  unzipper.finish(array);
  return array;
}

}  // namespace

Array array_of(std::vector<std::byte> file, std::size_t dimensions, const std::string& name) {
  if (file.size() >= 2 && file[0] == std::byte{0x1f} && file[1] == std::byte{0x8b})
    return unzipped(file, dimensions, name);
  Array array{.sizes = sizes_of(file, dimensions, name), .file = {}};
  if (file.size() != declared_bytes(array)) refuse_length(array, fmt::format("has {} bytes", file.size()), name);
  array.file = std::move(file);
  return array;
}

}  // namespace syncopate::input::idx
