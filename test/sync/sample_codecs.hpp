// Codecs for tests, one for each kind of round: they stand on no shelf.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "compress/codec.hpp"

namespace syncopate::test {

using compress::Answer;
using compress::Combine;
using compress::Round;
using compress::Settings;
using compress::StepInfo;
using compress::Tensor;

/// Codecs of the shelf that leave out nothing but rounding: what they combine is near the average in every step.
inline std::vector<const compress::Codec*> rounding_codecs() {
  std::vector<const compress::Codec*> found;
  for (const compress::Codec* codec : compress::codecs())
    if (codec->feedback == compress::FeedbackUse::pointless) found.push_back(codec);
  return found;
}

inline std::span<float> floats_of(const Buffer& buffer) { return {static_cast<float*>(buffer.data), buffer.count}; }

inline bool takes_f32(DType dtype) { return dtype == DType::f32; }

inline std::size_t twice_the_floats(const Settings& /*settings*/, std::span<const Tensor> tensors) {
  return 2 * sizeof(float) * compress::elements_of(tensors) + 64;
}

/// Sends (index, value) of the elements that are not zero: packets of unequal lengths, gathered.
class Pairs final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    ranks_ = info.ranks;
    std::size_t used = 0;
    for (const Tensor& tensor : tensors_)
      for (std::uint32_t i = 0; i < tensor.values.count; ++i) {
        float value = floats_of(tensor.values)[i];
        if (value == 0) continue;
        const auto t = static_cast<std::uint16_t>(&tensor - tensors_.data());
        const std::uint32_t place = std::uint32_t{t} << 16 | i;
        std::memcpy(wire.data() + used, &place, 4);
        std::memcpy(wire.data() + used + 4, &value, 4);
        used += 8;
      }
    return {Combine::gather, Buffer(wire.data(), used, DType::u8)};
  }
  std::optional<Round> next(Answer answer) override {
    for (const Tensor& tensor : tensors_) std::ranges::fill(floats_of(tensor.values), 0.0F);
    for (const base::ConstBytes packet : answer.packets)
      for (std::size_t at = 0; at < packet.size(); at += 8) {
        std::uint32_t place = 0;
        float value = 0;
        std::memcpy(&place, packet.data() + at, 4);
        std::memcpy(&value, packet.data() + at + 4, 4);
        floats_of(tensors_[place >> 16].values)[place & 0xffff] += value / static_cast<float>(ranks_);
      }
    return std::nullopt;
  }

 private:
  std::span<const Tensor> tensors_;
  int ranks_ = 1;
};

/// Sends to each rank its part, which it sums and gathers: two rounds, of known lengths.
class Scattering final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    values_ = floats_of(tensors.front().values);
    info_ = info;
    wire_ = wire;
    lengths_.clear();
    for (int rank = 0; rank < info.ranks; ++rank) lengths_.push_back(part(rank).size() * sizeof(float));
    std::memcpy(wire.data(), values_.data(), values_.size_bytes());
    return {Combine::scatter, Buffer(wire.data(), values_.size_bytes(), DType::u8), lengths_};
  }
  std::optional<Round> next(Answer answer) override {
    return std::exchange(scattered_, !scattered_) ? finish(answer) : gather(answer);
  }

 private:
  [[nodiscard]] Range part(int rank) const {
    return even_part(values_.size(), static_cast<std::size_t>(info_.ranks), static_cast<std::size_t>(rank));
  }
  std::optional<Round> gather(Answer answer) {
    auto* sums = reinterpret_cast<float*>(wire_.data());
    const std::size_t count = part(info_.rank).size();
    std::fill_n(sums, count, 0.0F);
    for (const base::ConstBytes packet : answer.packets) {
      EXPECT_EQ(packet.size(), count * sizeof(float));
      for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        std::memcpy(&value, packet.data() + i * sizeof(float), sizeof value);
        sums[i] += value;
      }
    }
    for (std::size_t i = 0; i < count; ++i) sums[i] /= static_cast<float>(info_.ranks);
    return Round{Combine::gather, Buffer(sums, count * sizeof(float), DType::u8), lengths_};
  }
  std::optional<Round> finish(Answer answer) {
    std::size_t at = 0;
    for (const base::ConstBytes packet : answer.packets) {
      std::memcpy(values_.data() + at, packet.data(), packet.size());
      at += packet.size() / sizeof(float);
    }
    EXPECT_EQ(at, values_.size());
    return std::nullopt;
  }

  std::span<float> values_;
  StepInfo info_;
  base::Bytes wire_;
  std::vector<std::size_t> lengths_;
  bool scattered_ = false;
};

/// Two additive rounds with arithmetic between: the average, then the average of twice the average.
class TwoSums final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes /*wire*/) override {
    values_ = tensors.front().values;
    return {Combine::additive, values_};
  }
  std::optional<Round> next(Answer /*answer*/) override {
    if (std::exchange(doubled_, !doubled_)) return std::nullopt;
    for (float& value : floats_of(values_)) value *= 2;
    return Round{Combine::additive, values_};
  }

 private:
  Buffer values_;
  bool doubled_ = false;
};

/// One additive round after another, without end, and counts them in its values.
class Endless final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes /*wire*/) override {
    values_ = tensors.front().values;
    return {Combine::additive, values_};
  }
  std::optional<Round> next(Answer /*answer*/) override {
    for (float& value : floats_of(values_)) value += 1;
    return Round{Combine::additive, values_};
  }

 private:
  Buffer values_;
};

/// Sends what was kept and keeps the gradient: each step's result is the step's before. Its tensors adjoin.
class OneStepLate final : public compress::Coder {
 public:
  Round begin(std::span<const Tensor> tensors, const StepInfo& /*info*/, base::Bytes /*wire*/) override {
    for (const Tensor& tensor : tensors) {
      std::ranges::copy(tensor.values.bytes(), tensor.next.begin());
      std::ranges::copy(tensor.kept, tensor.values.bytes().begin());
    }
    const Buffer& first = tensors.front().values;
    return {Combine::additive, Buffer(first.data, compress::elements_of(tensors), first.dtype)};
  }
  std::optional<Round> next(Answer /*answer*/) override { return std::nullopt; }
};

template <class Made>
std::unique_ptr<compress::Coder> make(const Settings& /*settings*/) {
  return std::make_unique<Made>();
}
inline std::size_t bytes_kept(const Settings& /*settings*/, const Tensor& tensor, int /*ranks*/) {
  return tensor.values.bytes().size();
}

inline const compress::Codec kPairs{.name = "pairs",
                                    .combines = {.gather = true},
                                    .takes = takes_f32,
                                    .wire_bytes = twice_the_floats,
                                    .coder = make<Pairs>};
inline const compress::Codec kScattering{.name = "scattering",
                                         .combines = {.gather = true, .scatter = true},
                                         .one_round = false,
                                         .takes = takes_f32,
                                         .wire_bytes = twice_the_floats,
                                         .coder = make<Scattering>};
inline const compress::Codec kTwoSums{.name = "two_sums",
                                      .combines = {.additive = true},
                                      .one_round = false,
                                      .takes = takes_f32,
                                      .wire_bytes = twice_the_floats,
                                      .coder = make<TwoSums>};
inline const compress::Codec kEndless{.name = "endless",
                                      .combines = {.additive = true},
                                      .one_round = false,
                                      .takes = takes_f32,
                                      .wire_bytes = twice_the_floats,
                                      .coder = make<Endless>};
inline const compress::Codec kLate{.name = "late",
                                   .combines = {.additive = true},
                                   .takes = takes_f32,
                                   .wire_bytes = twice_the_floats,
                                   .coder = make<OneStepLate>,
                                   .kept_bytes = bytes_kept};

}  // namespace syncopate::test
