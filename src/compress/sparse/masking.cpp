// Masking coder: proposes masks, forms the union of all ranks' masks, and sends the values of the union.
#include "compress/sparse/masking.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <ranges>
#include <utility>

#include "base/random.hpp"
#include "compress/sparse/coder.hpp"
#include "compress/sparse/packet.hpp"
#include "compress/sparse/sharing.hpp"
#include "kernel/select.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

using TensorPosition = std::uint32_t;  ///< position of a tensor in the bucket

/// Precedes the indices of a tensor's proposed elements.
struct Header {
  TensorPosition place = 0;
  float threshold = 0;
};
static_assert(sizeof(Header) == 8);

float threshold_in(base::ConstBytes state) {
  float threshold = 0;
  std::memcpy(&threshold, state.data(), sizeof threshold);
  return threshold;
}

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

/// The elements that a packet has without a proposal.
Range flushed_part(const MaskCoding& coding, std::size_t elements, std::uint64_t turn) {
  return coding.flush_in == 0 ? Range{} : even_part(elements, coding.flush_in, turn % coding.flush_in);
}

/// mask = union of mask and part.
void add_part(Selection& mask, Range part, const float* elements) {
  if (part.size() == 0) return;
  std::vector<std::uint32_t> united;
  const auto all = std::views::iota(static_cast<std::uint32_t>(part.begin), static_cast<std::uint32_t>(part.end));
  std::ranges::set_union(mask.indices(), all, std::back_inserter(united));
  mask.clear();
  for (const std::uint32_t i : united) mask.add(i, elements[i]);
}

void select_alone(const MaskCoding& coding, const Compensated& tensor, const Tensor& source, const StepInfo& info,
                  Selection& into) {
  static_cast<void>(form_all(tensor));
  into.clear();
  if (tensor.size() == 0) return;
  const Proposal made = coding.propose(tensor, source, info, threshold_in(source.kept), into);
  const double density = static_cast<double>(into.size()) / static_cast<double>(tensor.size());
  const float next = coding.next_threshold(made.threshold, density, info);
  std::memcpy(source.next.data(), &next, sizeof next);
  add_part(into, flushed_part(coding, tensor.size(), info.turn()), tensor.elements());
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
    thresholds_.clear();
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
    for (std::vector<std::uint32_t>& mask : masks_) mask.clear();
    agreed_.assign(tensors_.size(), 0);
    for (const base::ConstBytes proposals : answer.packets) unite(proposals);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      adapt(i);
      flush(masks_[i], tensors_[i].values.count);
      if (tensors_[i].report != nullptr) tensors_[i].report->add(masks_[i].size(), tensors_[i].values.count);
    }
    return values_round();
  }

 private:
  /// Forms the tensor and writes the proposed elements to `proposed_`.
  void propose(const Compensated& tensor, const Tensor& source) {
    const std::uint32_t largest = form_all(tensor);
    proposed_.clear();
    float& threshold = thresholds_.emplace_back(threshold_in(source.kept));
    if (is_drawn(source, info_, coding_.proposers)) {
      const Proposal made = coding_.propose(tensor, source, info_, threshold, proposed_);
      threshold = made.threshold;
      if (source.report != nullptr && made.spread > 0) source.report->spread = made.spread;
    } else if (largest >= kernel::kNotFinite) {
      proposed_.add_at_least(kernel::kNotFinite, tensor.elements(), {0, tensor.size()});
    }
  }

  /// Writes the mask of the tensor that was formed last.
  std::size_t write_mask(base::Bytes into) const {
    const Header header{static_cast<TensorPosition>(formed_.size() - 1), thresholds_.back()};
    std::memcpy(into.data(), &header, sizeof header);
    return sizeof header + write_indices(proposed_.indices(), formed_.back().size(), into.subspan(sizeof header));
  }

  /// Keeps the threshold of the next step, the same on all ranks.
  void adapt(std::size_t i) {
    if (tensors_[i].values.count == 0) return;
    const float used = agreed_[i] > 0 ? agreed_[i] : threshold_in(tensors_[i].kept);
    const double density = static_cast<double>(masks_[i].size()) / static_cast<double>(tensors_[i].values.count);
    const float next = coding_.next_threshold(used, density, info_);
    std::memcpy(tensors_[i].next.data(), &next, sizeof next);
    if (tensors_[i].report != nullptr) tensors_[i].report->threshold = used;
  }

  void flush(std::vector<std::uint32_t>& mask, std::size_t elements) {
    const Range part = flushed_part(coding_, elements, info_.step);
    arrived_.resize(part.size());
    std::iota(arrived_.begin(), arrived_.end(), static_cast<std::uint32_t>(part.begin));
    add(mask, arrived_);
  }

  /// mask = union of mask and indices.
  void add(std::vector<std::uint32_t>& mask, const std::vector<std::uint32_t>& indices) {
    if (indices.empty()) return;
    united_.clear();
    std::ranges::set_union(mask, indices, std::back_inserter(united_));
    mask.swap(united_);
  }

  /// Adds a rank's proposals to the masks.
  void unite(base::ConstBytes proposals) {
    for (std::size_t least = 0; !proposals.empty();) {
      Header header;
      if (proposals.size() < sizeof header) throw Corrupt("a mask ends in its header");
      std::memcpy(&header, proposals.data(), sizeof header);
      const TensorPosition place = header.place;
      if (place < least || place >= tensors_.size()) throw Corrupt("a mask names an unknown tensor or is out of order");
      least = place + std::size_t{1};
      if (agreed_[place] == 0 && std::isfinite(header.threshold)) agreed_[place] = header.threshold;
      proposals = read_indices(tensors_[place].values.count, proposals.subspan(sizeof header), arrived_);
      if (tensors_[place].report != nullptr) tensors_[place].report->proposed += arrived_.size();
      add(masks_[place], arrived_);
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
  std::vector<float> thresholds_;  ///< this rank's
  std::vector<float> agreed_;      ///< that of the first proposal; 0: no rank proposed elements
  std::vector<Selection> selections_;
  // For the current tensor:
  Selection proposed_;
  std::vector<std::uint32_t> arrived_, united_;
};

}  // namespace

std::unique_ptr<Coder> masking_coder(MaskCoding coding) { return std::make_unique<MaskingCoder>(std::move(coding)); }

std::unique_ptr<Coder> own_mask_coder(const MaskCoding& coding) {
  return gathering_coder({.select = [coding](const Compensated& tensor, const Tensor& source, const StepInfo& info,
                                             Selection& into) { select_alone(coding, tensor, source, info, into); },
                          .feedback = coding.feedback});
}

std::size_t masking_bytes(std::span<const Tensor> tensors) {
  const std::size_t packets = gathering_bytes(tensors, {}, [](std::size_t elements) { return elements; });
  return packets + tensors.size() * sizeof(Header);
}

std::size_t masking_state_bytes(const Settings& /*settings*/, const Tensor& /*tensor*/, int /*ranks*/) {
  return sizeof(float);
}

std::vector<RoundBytes> masking_rounds(const MaskCoding& coding, const MaskDensity& expected,
                                       std::span<const Tensor> tensors) {
  const double flushed = coding.flush_in == 0 ? 0 : 1 / static_cast<double>(coding.flush_in);
  double masks = 0, values = 0;
  for (const Tensor& tensor : tensors) {
    const bool is_known = expected.is_measured && tensor.density > 0;
    const double travels = is_known ? tensor.density : 1 - (1 - expected.density) * (1 - flushed);
    const double united = is_known ? std::max(0.0, 1 - (1 - travels) / (1 - flushed)) : expected.density;
    const double proposed = 1 - std::pow(1 - united, 1.0 / coding.proposers);  // if masks were independent
    const std::size_t elements = tensor.values.count;
    masks += sizeof(Header) + expected_indices_bytes(selected_of(proposed, elements), elements);
    values += travels * static_cast<double>(elements) * sizeof(float);
  }
  return {{Combine::gather, masks, coding.proposers}, {Combine::additive, values}};
}

}  // namespace syncopate::compress::sparse
