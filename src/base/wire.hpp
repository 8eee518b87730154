// Wire: small messages written and read field by field, with every length checked.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "syncopate/error.hpp"

namespace syncopate::base {

/// The first `most` bytes at most, cut between UTF-8 characters.
[[nodiscard]] inline std::string_view cut(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

class WireWriter final {
 public:
  template <std::integral T>
  void number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void error_kind(ErrorKind kind) { number(static_cast<std::uint8_t>(kind)); }
  /// Writes at most `most` bytes; a longer text is cut off.
  void text(std::string_view value, std::size_t most) {
    value = cut(value, most);
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads field by field; throws Corrupt when a field exceeds the message.
class WireReader final {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral T>
  [[nodiscard]] T number() {
    T value;
    std::memcpy(&value, piece(sizeof value).data(), sizeof value);
    return value;
  }
  [[nodiscard]] ErrorKind error_kind() {
    const auto kind = number<std::uint8_t>();
    if (kind >= std::size(kErrorKinds)) refuse("its kind of error is unknown");
    return kErrorKinds[kind];
  }
  [[nodiscard]] std::string text(std::size_t most) {
    const auto size = number<std::uint32_t>();
    if (size > most) refuse("a text is too long");
    return std::string(piece(size));
  }
  [[nodiscard]] bool is_at_end() const noexcept { return rest_.empty(); }
  /// Throws Corrupt if bytes are left.
  void end() const {
    if (!rest_.empty()) refuse("bytes follow the end");
  }
  [[noreturn]] void refuse(std::string_view why) const {
    throw Corrupt(fmt::format("a message is malformed: {}", why));
  }

 private:
  std::string_view piece(std::size_t size) {
    if (rest_.size() < size) refuse("it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace syncopate::base
