// Random: random numbers that depend on nothing but (seed, set, image) and how many were drawn before.
#include "dataset/random.hpp"

namespace syncopate::tools::dataset {

std::uint32_t Random::word() noexcept {
  if (left_ == 0) refill();
  return block_[static_cast<std::size_t>(4 - left_--)];
}

void Random::refill() noexcept {
  std::array<std::uint32_t, 2> key = key_;
  block_ = counter_;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * block_[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * block_[2];
    block_ = {static_cast<std::uint32_t>(b >> 32) ^ block_[1] ^ key[0], static_cast<std::uint32_t>(b),
              static_cast<std::uint32_t>(a >> 32) ^ block_[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  ++counter_[0];
  left_ = 4;
}

double Random::bell() noexcept {
  constexpr double kSpread = 1.7320508075688772;  // sqrt(3): four uniforms have variance 4/12
  const double sum = (unit() + unit()) + (unit() + unit());
  return (sum - 2.0) * kSpread;
}

}  // namespace syncopate::tools::dataset
