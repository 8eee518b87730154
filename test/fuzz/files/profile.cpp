// Profiles: layers with sizes and times.
#include "fuzz/target.hpp"
#include "syncopate/predict.hpp"

namespace syncopate::fuzz::target {

void profile(Input input) {
  may_refuse<Misuse>([&] {
    const Profile profile = parse_profile(text_of(input), "file");
    std::uint64_t bytes = 0;
    for (const auto& layer : profile.layers) {
      hold(layer.bytes > 0 && bytes + layer.bytes > bytes, "bytes can be counted");
      bytes += layer.bytes;
    }
  });
}

}  // namespace syncopate::fuzz::target
