// Merging coder: reads two packets, sums them, keeps the largest sums, and writes a packet.
#include "compress/sparse/merging.hpp"

#include <utility>

#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

class MergingCoder final : public Coder, public Merger {
 public:
  MergingCoder(SparseCoding coding, MostSelected most)
      : most_(std::move(most)), feedback_(coding.feedback), gathering_(gathering_coder(std::move(coding))) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    step_ = info.step;
    wire_ = wire;
    Round round = gathering_->begin(tensors, info, wire);
    payload_ = round.payload.bytes();
    round.combine = Combine::mergeable;
    round.dense_bytes = 0;
    round.merger = this;
    round.most_bytes = wire.size();
    return round;
  }

  /// Decodes the merged packet as the only packet of a gather.
  [[nodiscard]] std::optional<Round> next(Answer answer) override { return gathering_->next(answer); }

  [[nodiscard]] Buffer merge(base::ConstBytes theirs) override {
    base::ConstBytes ours = payload_;
    sums_.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const std::size_t elements = tensors_[i].values.count;
      ours = read_packet({}, elements, ours, ours_);
      theirs = read_packet({}, elements, theirs, theirs_);
      add_selections(ours_, theirs_, sums_[i]);
    }
    if (!theirs.empty()) throw Corrupt("bytes follow the last sparse packet of a rank");
    std::size_t written = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      cut(sums_[i], tensors_[i]);
      written += write_packet({}, sums_[i], tensors_[i].values.count, wire_.subspan(written));
    }
    payload_ = wire_.first(written);
    return {wire_.data(), written, DType::u8};
  }

  void add(base::ConstBytes packet, std::span<float> into) const override { gathering_->add(packet, into); }

 private:
  void cut(Selection& sum, const Tensor& tensor) {
    const std::size_t most = most_(tensor.values.count, step_);
    if (sum.size() <= most) return;
    all_.indices.assign(sum.indices().begin(), sum.indices().end());
    all_.values.assign(sum.values().begin(), sum.values().end());
    sum.keep_largest(most);
    dropped_ = {};
    const auto kept = sum.indices();
    for (std::size_t i = 0, j = 0; i < all_.indices.size(); ++i) {
      if (j < kept.size() && kept[j] == all_.indices[i]) {
        ++j;
        continue;
      }
      dropped_.indices.push_back(all_.indices[i]);
      dropped_.values.push_back(all_.values[i]);
    }
    take_back(feedback_, tensor, dropped_.indices, dropped_.values);
  }

  const MostSelected most_;
  const Feedback feedback_;
  const std::unique_ptr<Coder> gathering_;
  std::span<const Tensor> tensors_;
  std::uint64_t step_ = 0;
  base::Bytes wire_, payload_;
  std::vector<Selection> sums_;  ///< by tensor
  Arrival ours_, theirs_, all_, dropped_;
};

}  // namespace

std::unique_ptr<Coder> merging_coder(SparseCoding coding, MostSelected most) {
  return std::make_unique<MergingCoder>(std::move(coding), std::move(most));
}

std::size_t merging_bytes(std::span<const Tensor> tensors,
                          const std::function<std::size_t(std::size_t elements)>& selected) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += most_packet_bytes({}, selected(tensor.values.count), tensor.values.count);
  return bytes;
}

void add_selections(const Arrival& a, const Arrival& b, Selection& sum) {
  sum.clear();
  std::size_t i = 0, j = 0;
  while (i < a.indices.size() || j < b.indices.size()) {
    const bool from_a = j == b.indices.size() || (i < a.indices.size() && a.indices[i] <= b.indices[j]);
    const bool from_b = i == a.indices.size() || (j < b.indices.size() && b.indices[j] <= a.indices[i]);
    const std::uint32_t index = from_a ? a.indices[i] : b.indices[j];
    const float value = from_a && from_b ? a.values[i] + b.values[j] : from_a ? a.values[i] : b.values[j];
    sum.add(index, value);
    i += from_a ? 1 : 0;
    j += from_b ? 1 : 0;
  }
}

}  // namespace syncopate::compress::sparse
