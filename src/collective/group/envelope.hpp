// Envelope: the first frame of a message with a tag, by which its receiver finds the receive that it belongs to.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "syncopate/dtype.hpp"

namespace syncopate::collective::group {

/// A short message travels inside its envelope. The elements of a longer one follow in frames of their own.
struct Envelope {
  static constexpr std::size_t kBytes = 64;  ///< one cache line
  static constexpr std::size_t kRoom = 40;   ///< for elements
  using Wire = std::array<std::byte, kBytes>;

  std::int64_t tag = 0;
  std::uint64_t count = 0;
  DType dtype = DType::f32;

  /// Throws Corrupt for a type that does not exist, or for a length beyond the address space.
  [[nodiscard]] static Envelope decode(const Wire& wire);
  /// With the elements, if they fit.
  [[nodiscard]] static Wire encode(std::int64_t tag, const ConstBuffer& data);
  /// Signature of the frames that follow, which both ranks compute.
  [[nodiscard]] static std::uint64_t signature_of(const Wire& wire) noexcept;
  [[nodiscard]] static base::ConstBytes elements_in(const Wire& wire) noexcept {
    return base::ConstBytes(wire).last(kRoom);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return count * size_of(dtype); }
  [[nodiscard]] bool is_whole() const noexcept { return bytes() <= kRoom; }
};

/// "f32 x 3 (12 bytes)".
[[nodiscard]] std::string text_of_length(DType dtype, std::uint64_t count);

}  // namespace syncopate::collective::group
