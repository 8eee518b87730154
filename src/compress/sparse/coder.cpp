// Gathering coder: selects, packs, gathers and sums; or sends the selections as a dense round.
#include "compress/sparse/coder.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernel/stream.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

std::span<float> floats(const Tensor& tensor) { return {static_cast<float*>(tensor.values.data), tensor.values.count}; }

class GatheringCoder final : public Coder {
 public:
  explicit GatheringCoder(SparseCoding coding)
      : coding_(std::move(coding)), dense_(settings_of("none").codec->coder(settings_of("none"))) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    info_ = info;
    wire_ = wire;
    is_dense_ = false;
    selections_.resize(tensors.size());
    std::size_t written = 0, index_bytes = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Compensated tensor(tensors[i], coding_.feedback);
      coding_.select(tensor, tensors[i], info, selections_[i]);
      const base::Bytes packet = wire.subspan(written);
      written += write_packet(coding_.values, selections_[i], tensor.size(), packet);
      index_bytes += index_bytes_of(packet);
      if (tensors[i].report != nullptr) tensors[i].report->add(selections_[i].size(), tensor.size());
      if (coding_.values.bits == 32)
        tensor.sent(selections_[i].indices());
      else
        tensor.sent(selections_[i].indices(), selections_[i].values());
    }
    return {.combine = Combine::gather,
            .payload = Buffer(wire.data(), written, DType::u8),
            .dense_bytes = elements_of(tensors) * sizeof(float),
            .ends = true,
            .index_bytes = index_bytes};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    if (is_dense_) return dense_->next(answer);
    if (answer.declined) return dense_round();
    add_up(answer);
    return std::nullopt;
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    Arrival arrival;
    if (!read_packet(coding_.values, into.size(), packet, arrival).empty())
      throw Corrupt("bytes follow a sparse packet");
    for (std::size_t i = 0; i < arrival.indices.size(); ++i) into[arrival.indices[i]] += arrival.values[i];
  }

 private:
  /// The additive round divides by the number of ranks.
  [[nodiscard]] Round dense_round() {
    is_dense_ = true;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      std::ranges::fill(floats(tensors_[i]), 0.0F);
      const auto indices = selections_[i].indices();
      const std::span<const float> values = std::as_const(selections_[i]).values();
      for (std::size_t j = 0; j < indices.size(); ++j) floats(tensors_[i])[indices[j]] = values[j];
    }
    return dense_->begin(tensors_, info_, wire_);
  }

  /// Averages tensor by tensor; each rank's answer has one packet per tensor, in order.
  void add_up(const Answer& answer) {
    if (elements_of(tensors_) == 0) return;
    std::vector<base::ConstBytes> packets(answer.packets.begin(), answer.packets.end());
    arrivals_.resize(packets.size());
    for (const Tensor& tensor : tensors_) {
      for (std::size_t rank = 0; rank < packets.size(); ++rank)
        packets[rank] = read_packet(coding_.values, tensor.values.count, packets[rank], arrivals_[rank]);
      average(floats(tensor));
    }
    for (const base::ConstBytes rest : packets)
      if (!rest.empty()) throw Corrupt("bytes follow the last sparse packet of a rank");
  }

  /// Sums tile by tile, in rank order, so each element is written to memory once.
  void average(std::span<float> values) {
    std::array<float, 4096> tile;
    next_.assign(arrivals_.size(), 0);
    for (std::size_t begin = 0; begin < values.size(); begin += tile.size()) {
      const std::size_t end = std::min(begin + tile.size(), values.size());
      tile.fill(0);
      for (std::size_t rank = 0; rank < arrivals_.size(); ++rank) add_to(tile.data(), {begin, end}, rank);
      kernel::stream(values.data() + begin, tile.data(), end - begin);
    }
  }

  void add_to(float* tile, Range range, std::size_t rank) {
    const Arrival& arrival = arrivals_[rank];
    const auto ranks = static_cast<float>(info_.ranks);
    std::size_t& i = next_[rank];
    for (; i < arrival.indices.size() && arrival.indices[i] < range.end; ++i)
      tile[arrival.indices[i] - range.begin] += arrival.values[i] / ranks;
  }

  const SparseCoding coding_;
  const std::unique_ptr<Coder> dense_;
  std::span<const Tensor> tensors_;
  StepInfo info_;
  base::Bytes wire_;
  bool is_dense_ = false;
  std::vector<Selection> selections_;  ///< by tensor
  std::vector<Arrival> arrivals_;      ///< of one tensor, by rank
  std::vector<std::size_t> next_;      ///< by rank: first position of its arrival that is not yet added
};

}  // namespace

std::unique_ptr<Coder> gathering_coder(SparseCoding coding) {
  return std::make_unique<GatheringCoder>(std::move(coding));
}

std::size_t gathering_bytes(std::span<const Tensor> tensors, const ValueCoding& values,
                            const std::function<std::size_t(std::size_t elements)>& selected) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += most_packet_bytes(values, selected(tensor.values.count), tensor.values.count);
  const Settings none = settings_of("none");
  return tensors.empty() ? 0 : std::max(bytes, none.codec->wire_bytes(none, tensors));
}

std::vector<RoundBytes> gathering_rounds(std::span<const Tensor> tensors, const ValueCoding& values,
                                         const std::function<std::size_t(std::size_t elements)>& selected) {
  double bytes = 0;
  for (const Tensor& tensor : tensors)
    bytes += expected_packet_bytes(values, selected(tensor.values.count), tensor.values.count);
  return {{Combine::gather, bytes}};
}

std::size_t selected_of(double density, std::size_t elements) noexcept {
  const auto exact = static_cast<std::size_t>(std::ceil(density * static_cast<double>(elements)));
  return std::min(exact, elements);
}

}  // namespace syncopate::compress::sparse
