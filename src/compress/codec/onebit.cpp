// 1-bit SGD: sends each element's sign; it decodes to the mean of its group's elements with that sign.
// Seide et al., "1-bit stochastic gradient descent and its application to data-parallel distributed training of speech
// DNNs", Interspeech 2014, section 3, with residuals in both rounds. In the paper, a group is a column of a matrix
// stored by columns. Here, a group is 512 consecutive elements, so bytes and parts do not depend on the shape.
//
//   b = sign x;  m- = mean of x with b = 1, m+ = mean of the others (-0 has a sign);  Q(x) = b ? m- : m+
//   size: per tensor of n elements 8 ceil(n / 64) + 8 ceil(n / 512) bytes; 2 (N - 1)/N of them pass a port
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "compress/quantised/coder.hpp"
#include "kernel/pack.hpp"
#include "kernel/quantize.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::codec {

namespace {

/// A group is two means and the packed signs.
class SignQuantiser final : public quantised::Quantiser {
 public:
  [[nodiscard]] std::size_t group() const noexcept override { return quantised::kGroup; }

  [[nodiscard]] std::size_t bytes(std::size_t elements) const noexcept override {
    return sizeof(kernel::Choice) + blocks_of(elements) * kernel::kBitBlock / 8;
  }

  void encode(std::span<const float> group, std::uint64_t /*word*/, std::byte* into) const override {
    std::uint8_t signs[quantised::kGroup];
    kernel::sign_fields(group.data(), group.size(), signs);
    const std::size_t blocks = blocks_of(group.size());
    std::memset(signs + group.size(), 0, blocks * kernel::kBitBlock - group.size());
    std::byte* const packed = into + sizeof(kernel::Choice);
    kernel::pack_bits({}, signs, blocks, packed);
    const kernel::Choice means = means_of(group, ones_of({packed, blocks * kernel::kBitBlock / 8}));
    std::memcpy(into, &means, sizeof means);
  }

  void decode(const std::byte* from, std::span<float> group) const override {
    kernel::Choice means;
    std::memcpy(&means, from, sizeof means);
    const bool are_means = std::isfinite(means.zero) && std::isfinite(means.one) && means.zero >= 0 && means.one <= 0;
    if (!are_means && !(std::isnan(means.zero) && std::isnan(means.one)))
      throw Corrupt("a group of signs has a mean with the wrong sign or a mean that is not finite");
    std::uint8_t signs[quantised::kGroup];
    static_cast<void>(kernel::unpack_bits({}, from + sizeof means, blocks_of(group.size()), signs));
    kernel::choose(means, signs, group.size(), group.data());
  }

 private:
  static std::size_t blocks_of(std::size_t elements) noexcept {
    return (elements + kernel::kBitBlock - 1) / kernel::kBitBlock;
  }

  /// Number of set bits.
  static std::size_t ones_of(base::ConstBytes packed) {
    std::size_t ones = 0;
    for (std::size_t at = 0; at < packed.size(); at += sizeof(std::uint64_t))
      ones += static_cast<std::size_t>(std::popcount(base::get<std::uint64_t>(packed, at)));
    return ones;
  }

  static kernel::Choice means_of(std::span<const float> group, std::size_t negatives) {
    const kernel::SignSums sums = kernel::sign_sums(group.data(), group.size());
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    if (!std::isfinite(sums.negative) || !std::isfinite(sums.positive)) return {nan, nan};
    const auto mean = [](double sum, std::size_t count) {
      return count == 0 ? 0.0F : static_cast<float>(sum / static_cast<double>(count));
    };
    return {mean(sums.positive, group.size() - negatives), mean(sums.negative, negatives)};
  }
};

quantised::Coding coding(const Settings& settings) {
  return {std::make_unique<SignQuantiser>(), std::make_unique<SignQuantiser>(), settings.feedback};
}

}  // namespace

extern constinit const Codec onebit = quantised::scattering_codec<coding>({
    .name = "onebit",
    .summary = "Signs and two means per 512 elements, with residuals in both rounds: 1.13 bits per element",
    .source = "Seide et al., Interspeech 2014",
    .feedback = FeedbackUse::sound,
});

}  // namespace syncopate::compress::codec
