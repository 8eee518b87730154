// Bytes: little-endian fields in byte spans, read and written without alignment or aliasing assumptions.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace syncopate::base {

[[nodiscard]] inline std::shared_ptr<std::byte[]> zeroed_pages(std::size_t bytes) {
  constexpr std::align_val_t kPage{4096};
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kPage));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* pages) { ::operator delete(pages, kPage); }};
}

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and so must be the machine");

[[nodiscard]] inline std::string text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <std::integral T>
void put(Bytes bytes, std::size_t offset, T value) {
  std::memcpy(bytes.subspan(offset, sizeof value).data(), &value, sizeof value);
}

template <std::integral T>
[[nodiscard]] T get(ConstBytes bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace syncopate::base
