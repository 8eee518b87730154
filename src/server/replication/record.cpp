// Records as bytes: a record whose body is longer than a message's is sent in parts.
#include "server/replication/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/message_fields.hpp"

namespace syncopate::server {

namespace {
constexpr std::uint64_t kRelayed = 201;  // the first kind
}  // namespace

MessageBytes bytes_of(const RelayMessage& message) { return written(kRelayed, message); }

RelayMessage relay_message_of(Payload bytes) { return read_as<RelayMessage>(kRelayed, std::move(bytes), "server"); }

void each_part(const Record& record, const std::function<void(const RecordPart&)>& take) {
  RecordPart part{
      .sequence = record.sequence, .worker = static_cast<std::uint32_t>(record.worker), .change = record.change};
  Payload* const body = body_of(part.change);
  base::ConstBytes rest = body == nullptr ? base::ConstBytes() : body->bytes;
  do {
    const std::size_t length = std::min(rest.size(), kMostBodyBytes);
    if (body != nullptr) body->bytes = rest.first(length);
    rest = rest.subspan(length);
    part.is_last = rest.empty();
    take(part);
  } while (!rest.empty());
}

bool RecordReader::add(RecordPart part, Record& record) {
  const Payload* const of_part = body_of(part.change);
  const base::ConstBytes bytes = of_part == nullptr ? base::ConstBytes() : of_part->bytes;
  if (body_.size() + bytes.size() > most_bytes_)
    throw Corrupt(fmt::format("a record has more than {} bytes", most_bytes_));
  if (!part.is_last || !body_.empty()) body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!part.is_last) return false;
  record = {.sequence = part.sequence, .worker = part.worker, .change = std::move(part.change)};
  if (body_.empty()) return true;  // a single part, which is not copied
  const Payload whole = payload_of(std::exchange(body_, {}));
  if (Payload* const body = body_of(record.change)) *body = whole;
  return true;
}

}  // namespace syncopate::server
