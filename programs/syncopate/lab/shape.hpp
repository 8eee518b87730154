// Shape: how large a token bucket and a packet must be for a port to keep its rate. Arithmetic only.
#pragma once

#include <cstdint>
#include <string>

namespace syncopate::tools::lab {

struct Shape {
  std::uint64_t rate_bits = 0;  ///< per second; 0: not shaped
  std::uint64_t gso_bytes = 65'536;
  std::uint64_t burst_bytes = 0;
};

/// "1gbit" -> its shape; throws Misuse with the allowed forms.
[[nodiscard]] Shape shape_of(const std::string& rate);

}  // namespace syncopate::tools::lab
