// Pages: zeroed memory on separate pages, so that it shares no cache line with other memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace syncopate::base {

[[nodiscard]] inline std::shared_ptr<std::byte[]> zeroed_pages(std::size_t bytes) {
  constexpr std::align_val_t kPage{4096};
  auto* memory = static_cast<std::byte*>(::operator new(bytes, kPage));
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* pages) { ::operator delete(pages, kPage); }};
}

}  // namespace syncopate::base
