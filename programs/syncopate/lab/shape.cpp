// Shape: how large a token bucket and a packet must be for a port to keep its rate. Arithmetic only.
#include "lab/shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "syncopate/error.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::lab {

// A TCP sender hands the shaper packets of up to 64 KiB that a real card would cut (GSO). A bucket smaller than one of
// them makes tbf cut it in software (several times the CPU, and drops); a large bucket lets small messages pass
// unshaped. So the packets are capped by rate, at about 260 us of line and at least 16 KiB, and
//   bucket = packet + its headers + 100 us of line
// where the last term is what the rate earns while the kernel's timer is late.
Shape shape_of(const std::string& rate) {
  constexpr double kSlowest = 1e5, kFastest = 1e11;
  const double bits = parse_rate(rate);
  if (bits != 0 && !(bits >= kSlowest && bits <= kFastest))
    throw Misuse(fmt::format("rate '{}' is out of range; allowed: 100kbit to 100gbit, or none", rate));
  Shape shape;
  shape.rate_bits = static_cast<std::uint64_t>(bits);
  if (shape.rate_bits == 0) return shape;
  const double bytes_per_second = bits / 8;
  shape.gso_bytes = static_cast<std::uint64_t>(std::clamp(bytes_per_second * 260e-6, 16'384.0, 65'536.0));
  shape.burst_bytes = shape.gso_bytes * 105 / 100 + 2'000 + static_cast<std::uint64_t>(bytes_per_second * 100e-6);
  return shape;
}

}  // namespace syncopate::tools::lab
