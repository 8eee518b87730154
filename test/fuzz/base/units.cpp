// Sizes and rates as people write them.
#include "syncopate/tooling/units.hpp"

#include "fuzz/target.hpp"
#include "lab/shape.hpp"

namespace syncopate::fuzz::target {

void units(Input input) {
  const std::string text(text_of(input));
  may_refuse<Misuse>([&] { hold(parse_bytes(text) < std::uint64_t{1} << 63, "sizes can be counted"); });
  may_refuse<Misuse>([&] { hold(parse_rate(text) >= 0, "rates are not negative"); });
  may_refuse<Misuse>([&] {
    const auto shape = tools::lab::shape_of(text);
    hold(shape.rate_bits == 0 || shape.burst_bytes > shape.gso_bytes, "a bucket holds a packet");
  });
}

}  // namespace syncopate::fuzz::target
