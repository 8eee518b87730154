// Envelopes: tag, number of elements and type at fixed places, then the elements of a short message.
#include "collective/group/envelope.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "syncopate/error.hpp"

namespace syncopate::collective::group {

namespace {

constexpr std::size_t kTag = 0, kCount = 8, kType = 16, kElements = Envelope::kBytes - Envelope::kRoom;

}  // namespace

Envelope::Wire Envelope::encode(std::int64_t tag, const ConstBuffer& data) {
  Wire wire{};
  base::put(wire, kTag, tag);
  base::put(wire, kCount, std::uint64_t{data.count});
  base::put(wire, kType, static_cast<std::uint8_t>(data.dtype));
  if (data.bytes().size() <= kRoom) std::ranges::copy(data.bytes(), wire.begin() + kElements);
  return wire;
}

Envelope Envelope::decode(const Wire& wire) {
  const auto count = base::get<std::uint64_t>(wire, kCount);
  const auto type = base::get<std::uint8_t>(wire, kType);
  if (type >= std::size(kDTypes) || count > SIZE_MAX / sizeof(double))
    throw Corrupt(fmt::format("a message with a tag has {} elements of type {}", count, type));
  return {base::get<std::int64_t>(wire, kTag), count, static_cast<DType>(type)};
}

std::uint64_t Envelope::signature_of(const Wire& wire) noexcept { return XXH3_64bits(wire.data(), wire.size()); }

std::string text_of_length(DType dtype, std::uint64_t count) {
  return fmt::format("{} x {} ({} bytes)", name_of(dtype), count, count * size_of(dtype));
}

}  // namespace syncopate::collective::group
