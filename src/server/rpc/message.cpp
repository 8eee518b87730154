// Message: the contents of one gRPC message, packed without copying bodies, unpacked with one copy.
#include "server/rpc/message.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace syncopate::server::rpc {

namespace {

using Owner = std::shared_ptr<const void>;

struct alignas(kMessageAlignment) Line {
  std::byte bytes[kMessageAlignment];
};

/// gRPC takes read-only memory by a non-const pointer; it does not write to it.
grpc::Slice refer_to(Payload body) {
  return {const_cast<std::byte*>(body.bytes.data()), body.bytes.size(),
          [](void* owner) { delete static_cast<Owner*>(owner); }, new Owner(std::move(body.owner))};
}

grpc::Slice copy_of(Kind kind, base::ConstBytes bytes) {
  grpc::Slice slice(1 + bytes.size());
  auto* at = const_cast<std::uint8_t*>(slice.begin());
  *at = static_cast<std::uint8_t>(kind);
  if (!bytes.empty()) std::memcpy(at + 1, bytes.data(), bytes.size());
  return slice;
}

}  // namespace

grpc::ByteBuffer pack(Outgoing message) {
  grpc::Slice slices[2] = {copy_of(Kind::message, base::ConstBytes(message.head).first(message.head_bytes)), {}};
  const bool has_body = !message.body.bytes.empty();
  if (has_body) slices[1] = refer_to(std::move(message.body));
  return {slices, has_body ? 2U : 1U};
}

grpc::ByteBuffer pack_farewell(std::string_view error) {
  const grpc::Slice slice = copy_of(Kind::farewell, std::as_bytes(std::span(error.substr(0, kMostTextBytes))));
  return {&slice, 1};
}

grpc::ByteBuffer pack_heartbeat() {
  const grpc::Slice slice = copy_of(Kind::heartbeat, {});
  return {&slice, 1};
}

std::optional<Incoming> unpack(const grpc::ByteBuffer& buffer) {
  const std::size_t bytes = buffer.Length();
  std::vector<grpc::Slice> slices;
  if (bytes == 0 || bytes > kMostWireBytes || !buffer.Dump(&slices).ok()) return std::nullopt;
  const auto first = std::ranges::find_if(slices, [](const grpc::Slice& slice) { return slice.size() > 0; });
  const auto kind = static_cast<Kind>(*first->begin());
  const bool has_right_bytes =
      kind == Kind::farewell || (kind == Kind::message && bytes > 1) || (kind == Kind::heartbeat && bytes == 1);
  if (!has_right_bytes) return std::nullopt;
  const auto lines = std::make_shared_for_overwrite<Line[]>((bytes + kMessageAlignment - 1) / kMessageAlignment);
  auto* const begin = reinterpret_cast<std::byte*>(lines.get());
  auto* end = begin;
  for (auto slice = first; slice != slices.end(); ++slice) {
    const std::size_t skipped = slice == first ? 1 : 0;
    end = std::ranges::copy(std::as_bytes(std::span(slice->begin() + skipped, slice->end())), end).out;
  }
  return Incoming{kind, {lines, base::ConstBytes(begin, end)}};
}

std::string readable(base::ConstBytes text) {
  std::string result;
  for (const std::byte byte : text.first(std::min(text.size(), kMostTextBytes))) {
    const char letter = static_cast<char>(byte);
    result += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return result;
}

}  // namespace syncopate::server::rpc
