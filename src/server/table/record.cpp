// Records as bytes: a record whose body is longer than a message's is sent in parts.
#include "server/table/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/message_fields.hpp"

namespace syncopate::server {

namespace {

constexpr std::uint64_t kRelayed = 201;  // the first kind

/// Calls `use` with the body of a change, if its kind has one.
template <class Use>
void with_body(Change& change, const Use& use) {
  const auto use_field = [&](auto& field) {
    if constexpr (requires { field.owner; }) use(field);
  };
  std::visit([&](auto& of) { std::apply([&](auto&... field) { (use_field(field), ...); }, of.fields(of)); }, change);
}

}  // namespace

MessageBytes bytes_of(const RelayMessage& message) { return written(kRelayed, message); }

RelayMessage relay_message_of(Payload bytes) { return read_as<RelayMessage>(kRelayed, std::move(bytes), "server"); }

void each_part(const Record& record, const std::function<void(const RecordPart&)>& take) {
  RecordPart part{
      .sequence = record.sequence, .worker = static_cast<std::uint32_t>(record.worker), .change = record.change};
  base::ConstBytes rest;
  with_body(part.change, [&](const Payload& body) { rest = body.bytes; });
  do {
    const std::size_t length = std::min(rest.size(), kMostBodyBytes);
    with_body(part.change, [&](Payload& body) { body.bytes = rest.first(length); });
    rest = rest.subspan(length);
    part.is_last = rest.empty();
    take(part);
  } while (!rest.empty());
}

bool RecordReader::add(RecordPart part, Record& record) {
  base::ConstBytes bytes;
  with_body(part.change, [&](const Payload& body) { bytes = body.bytes; });
  if (body_.size() + bytes.size() > most_bytes_)
    throw Corrupt(fmt::format("a record has more than {} bytes", most_bytes_));
  if (!part.is_last || !body_.empty()) body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!part.is_last) return false;
  record = {.sequence = part.sequence, .worker = part.worker, .change = std::move(part.change)};
  if (body_.empty()) return true;  // a single part, which is not copied
  const Payload whole = payload_of(std::exchange(body_, {}));
  with_body(record.change, [&](Payload& body) { body = whole; });
  return true;
}

}  // namespace syncopate::server
