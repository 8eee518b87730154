// Pictures from anywhere: the middle, and a random cut, of whatever the bytes declare.
#include <cmath>
#include <vector>

#include "fuzz/target.hpp"
#include "input/picture/photograph.hpp"

namespace syncopate::fuzz::target {

void picture(Input input) {
  constexpr int kSide = 16;
  std::vector<float> pixels(3 * kSide * kSide);
  const auto decoder = input::picture_decoder();
  for (const bool augment : {false, true})
    may_refuse<Corrupt>([&] {
      decoder->decode(input, {.side = kSide, .augment = augment, .sample = static_cast<std::uint32_t>(input.size())},
                      pixels.data());
      for (const float value : pixels) hold(std::isfinite(value), "pixels are numbers");
    });
}

}  // namespace syncopate::fuzz::target
