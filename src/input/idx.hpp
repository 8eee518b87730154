// Idx: the file format of MNIST, an array of unsigned bytes after a header with its sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace syncopate::input::idx {

struct Array {
  std::vector<std::uint32_t> sizes;  ///< of each dimension; the last one varies fastest
  std::vector<std::byte> file;       ///< header and values

  [[nodiscard]] std::size_t header_bytes() const noexcept { return 4 * (1 + sizes.size()); }
  [[nodiscard]] base::ConstBytes values() const noexcept { return base::ConstBytes(file).subspan(header_bytes()); }
};

/// Most bytes of a file, and of the values that it declares.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

/// The array in the bytes of a file, which may be compressed by gzip (RFC 1952). The file begins with 00 00 08
/// (unsigned bytes) and the number of dimensions, then has each size as 32 bits, most significant byte first. Throws
/// Corrupt that names file, position and reason: another type or number of dimensions, a length that differs from the
/// declared one, values of more than kMostBytes, damaged or truncated gzip data, bytes after its end. Allocates at most
/// 1032 times the bytes of the file, the largest ratio of its compression.
[[nodiscard]] Array array_of(std::vector<std::byte> file, std::size_t dimensions, const std::string& name);

}  // namespace syncopate::input::idx
