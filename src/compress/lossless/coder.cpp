// Lossless coder: encodes blocks by owner, sums them, encodes the averages and decodes them.
#include "compress/lossless/coder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "compress/lossless/block.hpp"
#include "kernel/cast.hpp"
#include "kernel/reduce.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::lossless {

namespace {

std::size_t blocks_of(std::size_t elements) { return (elements + kBlock - 1) / kBlock; }

/// Calls work(tensor, range, first) for each tensor that overlaps a range of the run. `range` has the tensor's
/// elements; `first` is the position of the first one in the run's range.
template <class Work>
void each_piece(std::span<const Tensor> tensors, Range range, Work work) {
  std::size_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t end = begin + tensor.values.count;
    const Range piece{std::max(begin, range.begin), std::min(end, range.end)};
    if (piece.begin < piece.end) work(tensor, Range{piece.begin - begin, piece.end - begin}, piece.begin - range.begin);
    begin = end;
  }
}

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

class LosslessCoder final : public Coder {
 public:
  explicit LosslessCoder(DType wire_type) : wire_type_(wire_type) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    info_ = info;
    wire_ = wire;
    elements_ = elements_of(tensors);
    travels_ = tensors.empty() || size_of(tensors.front().values.dtype) > 2 ? wire_type_ : tensors.front().values.dtype;
    is_gathered_ = false;
    lengths_.clear();
    std::size_t written = 0;
    for (int rank = 0; rank < info.ranks; ++rank) {
      const std::size_t before = written;
      each_block(part(rank), [&](Range block) { written += write_block(values_of(block), wire_.subspan(written)); });
      lengths_.push_back(written - before);
    }
    return {.combine = Combine::scatter,
            .payload = Buffer(wire.data(), written, DType::u8),
            .lengths = lengths_,
            .most_bytes = wire.size(),
            .own_lengths = true};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    if (std::exchange(is_gathered_, true)) {
      take_averages(answer);
      return std::nullopt;
    }
    return Round{.combine = Combine::gather, .payload = Buffer(wire_.data(), add_up(answer), DType::u8), .ends = true};
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    std::vector<std::uint16_t> values(std::min(kBlock, into.size()));
    std::vector<float> decoded(values.size());
    for (std::size_t begin = 0; begin < into.size(); begin += kBlock) {
      const std::size_t count = std::min(kBlock, into.size() - begin);
      packet = read_block(packet, std::span(values).first(count));
      kernel::cast({wire_type_, DType::f32}, bytes(values), bytes(decoded), count);
      kernel::reduce({}, reinterpret_cast<std::byte*>(into.data() + begin), bytes(decoded), count);
    }
    if (!packet.empty()) throw Corrupt("bytes follow the last block of a packet");
  }

 private:
  /// The elements that a rank owns, as whole blocks.
  [[nodiscard]] Range part(int rank) const {
    const Range blocks =
        even_part(blocks_of(elements_), static_cast<std::size_t>(info_.ranks), static_cast<std::size_t>(rank));
    return {std::min(blocks.begin * kBlock, elements_), std::min(blocks.end * kBlock, elements_)};
  }

  template <class Work>
  static void each_block(Range range, Work work) {
    for (std::size_t begin = range.begin; begin < range.end; begin += kBlock)
      work(Range{begin, std::min(begin + kBlock, range.end)});
  }

  /// Elements of the run in the wire type, valid until the next call.
  [[nodiscard]] std::span<const std::uint16_t> values_of(Range block) {
    values_.resize(kBlock);
    each_piece(tensors_, block, [&](const Tensor& tensor, Range piece, std::size_t first) {
      const Buffer& from = tensor.values;
      kernel::cast({from.dtype, travels_}, from.bytes().data() + piece.begin * size_of(from.dtype),
                   bytes(values_) + first * sizeof(std::uint16_t), piece.size());
    });
    return std::span(values_).first(block.size());
  }

  void take(Range block) {
    each_piece(tensors_, block, [&](const Tensor& tensor, Range piece, std::size_t first) {
      const Buffer& to = tensor.values;
      kernel::cast({travels_, to.dtype}, bytes(values_) + first * sizeof(std::uint16_t),
                   to.bytes().data() + piece.begin * size_of(to.dtype), piece.size());
    });
  }

  /// Sums this rank's part of all packets and encodes the averages. Returns the bytes of the averages.
  [[nodiscard]] std::size_t add_up(Answer answer) {
    if (elements_ == 0) return 0;
    std::vector<base::ConstBytes> packets(answer.packets.begin(), answer.packets.end());
    sums_.resize(kBlock);
    addend_.resize(kBlock);
    std::size_t written = 0;
    each_block(part(info_.rank), [&](Range block) {
      const std::span values = std::span(values_).first(block.size());
      for (std::size_t rank = 0; rank < packets.size(); ++rank) {
        packets[rank] = read_block(packets[rank], values);
        std::vector<float>& into = rank == 0 ? sums_ : addend_;
        kernel::cast({travels_, DType::f32}, bytes(values_), bytes(into), block.size());
        if (rank > 0) kernel::reduce({}, bytes(sums_), bytes(addend_), block.size());
      }
      kernel::finish({.op = ReduceOp::average, .divisor = info_.ranks}, bytes(sums_), block.size());
      kernel::cast({DType::f32, travels_}, bytes(sums_), bytes(values_), block.size());
      written += write_block(values, wire_.subspan(written));
    });
    require_ended(packets);
    return written;
  }

  void take_averages(Answer answer) {
    if (elements_ == 0) return;
    std::vector<base::ConstBytes> packets(answer.packets.begin(), answer.packets.end());
    if (packets.size() != static_cast<std::size_t>(info_.ranks))
      throw Corrupt("the number of gathered packets is not the number of ranks");
    for (int rank = 0; rank < info_.ranks; ++rank)
      each_block(part(rank), [&](Range block) {
        base::ConstBytes& packet = packets[static_cast<std::size_t>(rank)];
        packet = read_block(packet, std::span(values_).first(block.size()));
        take(block);
      });
    require_ended(packets);
  }

  static void require_ended(const std::vector<base::ConstBytes>& packets) {
    for (const base::ConstBytes rest : packets)
      if (!rest.empty()) throw Corrupt("bytes follow the last block of a packet");
  }

  const DType wire_type_;
  DType travels_ = DType::bf16;
  std::span<const Tensor> tensors_;
  StepInfo info_;
  base::Bytes wire_;
  std::size_t elements_ = 0;
  bool is_gathered_ = false;
  std::vector<std::size_t> lengths_;   ///< of the scattered parts
  std::vector<std::uint16_t> values_;  ///< of one block
  std::vector<float> sums_, addend_;   ///< of one block
};

}  // namespace

std::unique_ptr<Coder> lossless_coder(DType wire_type) { return std::make_unique<LosslessCoder>(wire_type); }

std::size_t lossless_bytes(std::span<const Tensor> tensors) {
  const std::size_t elements = elements_of(tensors);
  return sizeof(std::uint16_t) * elements + blocks_of(elements);
}

}  // namespace syncopate::compress::lossless
