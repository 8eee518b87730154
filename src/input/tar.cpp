// Headers of tar archives: 512 bytes each, numbers in octal, contents rounded up to 512.
#include "input/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::input::tar {

namespace {

constexpr std::uint64_t kBlock = 512, kMostName = 64 << 10;

struct Field {
  std::size_t at, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kChecksum{148, 8}, kKind{156, 1}, kTarget{157, 100}, kMagic{257, 5},
    kPrefix{345, 155};

/// The first bytes of files of other formats that are taken for tar archives.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCompressed{
    {{"\x1f\x8b", "gzip"}, {"BZh", "bzip2"}, {"\3757zXZ", "xz"}, {"\x28\xb5\x2f\xfd", "zstd"}, {"PK\3\4", "zip"}}};

class Headers final {
 public:
  explicit Headers(const Archive& archive) : archive_(archive) {}

  [[nodiscard]] std::vector<StoredFile> members();

 private:
  /// Values of extended headers for the next member.
  struct Overrides {
    std::optional<std::string> name, target;
    std::optional<std::uint64_t> bytes;
  };

  [[noreturn]] void refuse(std::string_view why) const {
    throw Corrupt(fmt::format("{} at offset {}: {}", archive_.name, at_, why));
  }
  [[noreturn]] void refuse_header(std::string_view why) const;
  [[nodiscard]] std::string_view bytes_of(const Field& field) const {
    return {header_.data() + field.at, field.length};
  }
  /// The text up to the field's end or the first zero byte.
  [[nodiscard]] std::string_view text_of(const Field& field) const {
    return bytes_of(field).substr(0, bytes_of(field).find('\0'));
  }
  [[nodiscard]] bool next();
  void require_end();
  [[nodiscard]] bool is_zero() const { return header_.find_first_not_of('\0') == std::string::npos; }
  void require_checksum() const;
  [[nodiscard]] std::optional<std::uint64_t> octal_in(const Field& field) const;
  [[nodiscard]] std::uint64_t number_of(const Field& field) const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string contents(std::uint64_t bytes) const;
  void take_pax(const std::string& records, Overrides& overrides) const;
  [[nodiscard]] const StoredFile& target_of(const std::string& link);

  const Archive& archive_;
  std::uint64_t at_ = 0;  ///< offset of the current header
  std::string header_ = std::string(kBlock, '\0');
  std::vector<StoredFile> found_;
  std::unordered_map<std::string, std::size_t> by_path_;  ///< the first `indexed_` of `found_`, if there are links
  std::size_t indexed_ = 0;
};

/// A compressed archive is recognised only where no header is: a name may begin with the same bytes.
void Headers::refuse_header(std::string_view why) const {
  for (const auto& [magic, program] : kCompressed)
    if (at_ == 0 && header_.starts_with(magic))
      refuse(
          fmt::format("compressed by {}; allowed: a tar archive that is not compressed, because its files are read "
                      "at their offsets",
                      program));
  refuse(why);
}

/// False at the end: zero blocks, or no more bytes. Throws if more follows, because it would be lost silently.
bool Headers::next() {
  if (at_ == archive_.bytes) return false;
  const std::uint64_t length = std::min(kBlock, archive_.bytes - at_);
  archive_.read(at_, std::as_writable_bytes(std::span(header_).first(length)));
  if (length < kBlock) refuse_header("the archive is cut short: a header has 512 bytes");
  if (is_zero()) return require_end(), false;
  require_checksum();
  return true;
}

void Headers::require_end() {
  for (; archive_.bytes - at_ >= kBlock; at_ += kBlock) {
    archive_.read(at_, std::as_writable_bytes(std::span(header_)));
    if (!is_zero())
      refuse("data follow the archive's end: a damaged header, or several archives in one file (tar -A joins them)");
  }
}

void Headers::require_checksum() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool is_own = i >= kChecksum.at && i < kChecksum.at + kChecksum.length;
    sum += is_own ? std::uint64_t{' '} : static_cast<unsigned char>(header_[i]);
  }
  if (octal_in(kChecksum) != sum)
    refuse_header("the header's checksum is wrong: the archive is damaged, or not a tar archive");
}

/// A number between blanks and zero bytes; an empty field is 0.
std::optional<std::uint64_t> Headers::octal_in(const Field& field) const {
  std::string_view text = bytes_of(field);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  text = text.substr(0, text.find_first_of(std::string_view(" \0", 2)));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 8);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size())) return std::nullopt;
  return number;
}

/// Octal; if the first bit is set, the remaining bits of the field (GNU tar).
std::uint64_t Headers::number_of(const Field& field) const {
  const std::string_view text = bytes_of(field);
  std::uint64_t number = 0;
  if ((static_cast<unsigned char>(text[0]) & 0x80) != 0) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(i == 0 ? text[i] & 0x7f : text[i]);
      if (number >> 56 != 0) refuse("a number beyond 64 bits");
      number = number << 8 | byte;
    }
    return number;
  }
  const auto octal = octal_in(field);
  if (!octal) refuse("a number that is not octal");
  return *octal;
}

std::string Headers::name() const {
  const bool has_prefix = bytes_of(kMagic) == "ustar" && header_[kMagic.at + 5] == '\0';
  const std::string_view prefix = has_prefix ? text_of(kPrefix) : std::string_view();
  return prefix.empty() ? std::string(text_of(kName)) : fmt::format("{}/{}", prefix, text_of(kName));
}

std::string Headers::contents(std::uint64_t bytes) const {
  if (bytes > kMostName) refuse(fmt::format("an extended header of {} bytes; allowed: at most {}", bytes, kMostName));
  std::string text(bytes, '\0');
  archive_.read(at_ + kBlock, std::as_writable_bytes(std::span(text)));
  return text;
}

/// Records "LENGTH KEY=VALUE\n"; LENGTH counts the bytes of the record.
void Headers::take_pax(const std::string& records, Overrides& overrides) const {
  for (std::string_view rest = records; !rest.empty();) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error != std::errc() || length <= digits + 1 || length > rest.size() || rest[digits] != ' ' ||
        rest[length - 1] != '\n')
      refuse("a malformed record of an extended header");
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) refuse("a record of an extended header without a value");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key.starts_with("GNU.sparse.")) refuse("a sparse file; allowed: complete files");
    if (key == "path") overrides.name = std::string(value);
    if (key == "linkpath") overrides.target = std::string(value);
    if (key != "size") continue;
    std::uint64_t bytes = 0;
    const auto [last, wrong] = std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (wrong != std::errc() || last != value.data() + value.size()) refuse("a size that is not a number");
    overrides.bytes = bytes;
  }
}

const StoredFile& Headers::target_of(const std::string& link) {
  const auto path_of = [](const std::string& name) { return std::filesystem::path(name).lexically_normal().string(); };
  for (; indexed_ < found_.size(); ++indexed_) by_path_[path_of(found_[indexed_].name)] = indexed_;
  const auto target = by_path_.find(path_of(link));
  if (target == by_path_.end())
    refuse(
        fmt::format("a hard link to {}, which is not in the archive before it; create the archive with `tar "
                    "--hard-dereference`",
                    link));
  return found_[target->second];
}

std::vector<StoredFile> Headers::members() {
  Overrides overrides;
  while (next()) {
    const char kind = header_[kKind.at];
    const bool describes = kind == 'x' || kind == 'g' || kind == 'L' || kind == 'K';
    const std::uint64_t bytes = describes ? number_of(kSize) : overrides.bytes.value_or(number_of(kSize));
    const std::uint64_t left = archive_.bytes - at_ - kBlock;
    const bool has_contents = describes || kind == '0' || kind == '\0' || kind == '7' || overrides.bytes || bytes > 0;
    if (has_contents && bytes > left)
      refuse(fmt::format("{} bytes, but only {} are left: the archive is cut short or damaged", bytes, left));
    if (kind == 'S') refuse("a sparse file; allowed: complete files");
    if (kind == 'x') take_pax(contents(bytes), overrides);
    if (kind == 'L') overrides.name = contents(bytes).c_str();  // up to the terminating zero
    if (kind == 'K') overrides.target = contents(bytes).c_str();
    if (kind == '0' || kind == '\0' || kind == '7')
      found_.push_back({.name = overrides.name.value_or(name()), .bytes = bytes, .offset = at_ + kBlock});
    if (kind == '1') {
      StoredFile file = target_of(overrides.target.value_or(std::string(text_of(kTarget))));
      file.name = overrides.name.value_or(name());
      found_.push_back(std::move(file));
    }
    if (!describes) overrides = {};
    at_ += kBlock + std::min(left, (bytes + kBlock - 1) / kBlock * kBlock);  // the last block may be incomplete
  }
  return std::move(found_);
}

}  // namespace

std::vector<StoredFile> members_of(const Archive& archive) { return Headers(archive).members(); }

std::vector<StoredFile> records_of(const File& file, Extensions extensions) {
  auto found = members_of({file.path(), file.bytes(), [&](auto at, auto into) { file.read(at, into); }});
  std::erase_if(found, [&](const StoredFile& one) { return !is_record(one.name, extensions); });
  return found;
}

}  // namespace syncopate::input::tar
