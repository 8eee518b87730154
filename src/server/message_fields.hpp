// MessageFields: writes and reads the fields of any struct that has `fields`, and of a variant of such structs.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "server/message_bytes.hpp"

namespace syncopate::server {

class FieldWriter final {
 public:
  /// The alternatives have the numbers `first`, `first` + 1 and so on, in their order.
  template <class... Kinds>
  void kind(std::uint64_t first, const std::variant<Kinds...>& message) {
    bytes_.head.add(first + message.index());
    std::visit([&](const auto& of) { std::apply([&](const auto&... field) { (write(field), ...); }, of.fields(of)); },
               message);
  }
  [[nodiscard]] MessageBytes take() { return std::move(bytes_); }

 private:
  void write(std::uint64_t number) { bytes_.head.add(number); }
  void write(std::uint32_t number) { bytes_.head.add(number); }
  void write(Clock clock) { bytes_.head.add(static_cast<std::uint64_t>(clock)); }
  void write(bool value) { bytes_.head.add(value ? 1 : 0); }
  void write(double value) { bytes_.head.add(std::bit_cast<std::uint64_t>(value)); }
  void write(ErrorKind kind) { bytes_.head.add(static_cast<std::uint64_t>(kind)); }
  void write(const Payload& body) { bytes_.body = body; }
  template <class... Kinds>
  void write(const std::variant<Kinds...>& nested) {
    kind(1, nested);
  }

  MessageBytes bytes_;
};

class FieldReader final {
 public:
  FieldReader(Payload bytes, std::string_view sender) : rest_(std::move(bytes)), sender_(sender) {}

  /// Reads what FieldWriter::kind has written. Throws Corrupt.
  template <class Message>
  [[nodiscard]] Message kind(std::uint64_t first) {
    const std::uint64_t number = next();
    Message message;
    if (number < first || !choose(number - first, message, std::make_index_sequence<std::variant_size_v<Message>>()))
      throw Corrupt(fmt::format("a message of kind {} from a {}", number, sender_));
    return message;
  }
  /// Throws Corrupt if bytes are left.
  void end() const {
    if (!rest_.bytes.empty()) refuse("bytes follow its end");
  }

 private:
  template <class Message, std::size_t... kIndices>
  bool choose(std::uint64_t index, Message& message, std::index_sequence<kIndices...>) {
    return ((index == kIndices && (read_all(message.template emplace<kIndices>()), true)) || ...);
  }
  template <class Kind>
  void read_all(Kind& of) {
    std::apply([&](auto&... field) { (read(field), ...); }, Kind::fields(of));
  }

  [[nodiscard]] std::uint64_t next() {
    if (rest_.bytes.size() < sizeof(std::uint64_t)) refuse("it ends too early");
    const auto number = base::get<std::uint64_t>(rest_.bytes, 0);
    rest_.bytes = rest_.bytes.subspan(sizeof number);
    return number;
  }
  [[nodiscard]] std::uint64_t next(std::uint64_t most) {
    const std::uint64_t number = next();
    if (number > most) refuse(fmt::format("a field has the value {}; allowed: at most {}", number, most));
    return number;
  }
  void read(std::uint64_t& number) { number = next(); }
  void read(std::uint32_t& number) {
    number = static_cast<std::uint32_t>(next(std::numeric_limits<std::uint32_t>::max()));
  }
  void read(Clock& clock) { clock = static_cast<Clock>(next(static_cast<std::uint64_t>(kMostClock))); }
  void read(bool& value) { value = next(1) == 1; }
  void read(double& value) { value = std::bit_cast<double>(next()); }
  void read(ErrorKind& kind) { kind = kErrorKinds[next(std::size(kErrorKinds) - 1)]; }
  void read(Payload& body) {
    if (rest_.bytes.size() > kMostBodyBytes) refuse(fmt::format("its body has {} bytes", rest_.bytes.size()));
    body = std::exchange(rest_, {});
  }
  template <class... Kinds>
  void read(std::variant<Kinds...>& nested) {
    nested = kind<std::variant<Kinds...>>(1);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Corrupt(fmt::format("a message of a {} is malformed: {}", sender_, why));
  }

  Payload rest_;
  const std::string_view sender_;
};

/// `first`: the number of the first kind, so that messages of different senders have different numbers.
template <class Message>
[[nodiscard]] MessageBytes written(std::uint64_t first, const Message& message) {
  FieldWriter writer;
  writer.kind(first, message);
  return writer.take();
}
template <class Message>
[[nodiscard]] Message read_as(std::uint64_t first, Payload bytes, std::string_view sender) {
  FieldReader reader(std::move(bytes), sender);
  auto message = reader.kind<Message>(first);
  reader.end();
  return message;
}

}  // namespace syncopate::server
