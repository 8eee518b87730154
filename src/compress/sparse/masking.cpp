// Masking coder: proposes masks, forms the union of all ranks' masks, and sends the values of the union.
#include "compress/sparse/masking.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/random.hpp"
#include "compress/sparse/coder.hpp"
#include "compress/sparse/packet.hpp"
#include "compress/sparse/sharing.hpp"
#include "kernel/select.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

using Place = std::uint32_t;  ///< position of a tensor in the bucket

/// Whether this rank is one of the `proposers` ranks that are drawn for the tensor in this step.
bool is_drawn(const Tensor& tensor, const StepInfo& info, int proposers) {
  const base::CounterRandom random{tensor.key, info.step};
  std::vector<int> ranks(static_cast<std::size_t>(info.ranks));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto drawn = std::min(static_cast<std::size_t>(proposers), ranks.size());
  for (std::size_t i = 0; i < drawn; ++i)
    std::swap(ranks[i], ranks[i + random.below(static_cast<std::uint32_t>(ranks.size() - i), i)]);
  return std::ranges::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(drawn), info.rank) !=
         ranks.begin() + static_cast<std::ptrdiff_t>(drawn);
}

class MaskingCoder final : public Coder {
 public:
  explicit MaskingCoder(MaskCoding coding) : coding_(std::move(coding)) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    info_ = info;
    wire_ = wire;
    is_adding_ = false;
    formed_.clear();
    std::size_t written = 0;
    for (const Tensor& tensor : tensors) {
      propose(formed_.emplace_back(tensor, coding_.feedback), tensor);
      if (proposed_.size() > 0) written += write_mask(wire.subspan(written));
    }
    return {.combine = Combine::gather, .payload = Buffer(wire.data(), written, DType::u8), .index_bytes = written};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    if (is_adding_) {
      unpack(selections_, wire_, tensors_);
      return std::nullopt;
    }
    is_adding_ = true;
    masks_.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) flush(masks_[i], tensors_[i].values.count);
    for (const base::ConstBytes proposals : answer.packets) unite(proposals);
    return values_round();
  }

 private:
  /// Forms the tensor and writes the proposed elements to `proposed_`.
  void propose(const Compensated& tensor, const Tensor& source) {
    const std::uint32_t largest = form_all(tensor);
    proposed_.clear();
    if (is_drawn(source, info_, coding_.proposers))
      coding_.propose(tensor, source, info_, proposed_);
    else if (largest >= kernel::kNotFinite)
      proposed_.add_at_least(kernel::kNotFinite, tensor.elements(), {0, tensor.size()});
  }

  /// Writes the mask of the tensor that was formed last.
  std::size_t write_mask(base::Bytes into) const {
    const auto place = static_cast<Place>(formed_.size() - 1);
    std::memcpy(into.data(), &place, sizeof place);
    return sizeof place + write_indices(proposed_.indices(), formed_.back().size(), into.subspan(sizeof place));
  }

  void flush(std::vector<std::uint32_t>& mask, std::size_t elements) const {
    mask.clear();
    if (coding_.flush_in == 0) return;
    const Range part = even_part(elements, coding_.flush_in, info_.step % coding_.flush_in);
    mask.resize(part.size());
    std::iota(mask.begin(), mask.end(), static_cast<std::uint32_t>(part.begin));
  }

  /// Adds a rank's proposals to the masks.
  void unite(base::ConstBytes proposals) {
    for (std::size_t least = 0; !proposals.empty();) {
      Place place = 0;
      if (proposals.size() < sizeof place) throw Corrupt("a mask ends in its header");
      std::memcpy(&place, proposals.data(), sizeof place);
      if (place < least || place >= tensors_.size()) throw Corrupt("a mask names an unknown tensor or is out of order");
      least = place + std::size_t{1};
      proposals = read_indices(tensors_[place].values.count, proposals.subspan(sizeof place), arrived_);
      united_.clear();
      std::ranges::set_union(masks_[place], arrived_, std::back_inserter(united_));
      masks_[place].swap(united_);
    }
  }

  /// The round takes place even if this rank has no values: ranks with other rows of these gradients may have some.
  [[nodiscard]] Round values_round() {
    selections_.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      selections_[i].clear();
      for (const std::uint32_t index : masks_[i]) selections_[i].add(index, formed_[i].elements()[index]);
      formed_[i].sent(masks_[i]);
    }
    return packed_round(selections_, wire_);
  }

  const MaskCoding coding_;
  std::span<const Tensor> tensors_;
  StepInfo info_;
  base::Bytes wire_;
  bool is_adding_ = false;  ///< the additive round was returned
  // One entry per tensor:
  std::vector<Compensated> formed_;
  std::vector<std::vector<std::uint32_t>> masks_;
  std::vector<Selection> selections_;
  // For the current tensor:
  Selection proposed_;
  std::vector<std::uint32_t> arrived_, united_;
};

}  // namespace

std::unique_ptr<Coder> masking_coder(MaskCoding coding) { return std::make_unique<MaskingCoder>(std::move(coding)); }

std::size_t masking_bytes(std::span<const Tensor> tensors) {
  std::size_t masks = 0;
  for (const Tensor& tensor : tensors)
    masks += sizeof(Place) + most_indices_bytes(tensor.values.count, tensor.values.count);
  return std::max(masks, elements_of(tensors) * sizeof(float));
}

std::vector<RoundBytes> masking_rounds(const MaskCoding& coding, double density, std::span<const Tensor> tensors) {
  const double flushed = coding.flush_in == 0 ? 0 : 1 / static_cast<double>(coding.flush_in);
  const double travels = 1 - std::pow(1 - density, coding.proposers) * (1 - flushed);
  double masks = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t elements = tensor.values.count;
    masks += sizeof(Place) + expected_indices_bytes(selected_of(density, elements), elements);
  }
  return {{Combine::gather, masks, coding.proposers},
          {Combine::additive, travels * static_cast<double>(elements_of(tensors)) * sizeof(float)}};
}

}  // namespace syncopate::compress::sparse
