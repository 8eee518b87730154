// Scattering coder: encodes part by part and sums group by group.
#include "compress/quantised/coder.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "compress/quantised/levels.hpp"
#include "kernel/reduce.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::quantised {

namespace {

std::byte* bytes(float* elements) { return reinterpret_cast<std::byte*>(elements); }
const std::byte* bytes(const float* elements) { return reinterpret_cast<const std::byte*>(elements); }

class ScatteringCoder final : public Coder {
 public:
  explicit ScatteringCoder(Coding coding) : coding_(std::move(coding)) {}

  [[nodiscard]] Round begin(std::span<const Tensor> tensors, const StepInfo& info, base::Bytes wire) override {
    tensors_ = tensors;
    info_ = info;
    wire_ = wire;
    is_gathered_ = false;
    lengths_.clear();
    average_lengths_.clear();
    std::vector<Compensated> compensated;
    for (const Tensor& tensor : tensors_) compensated.emplace_back(tensor, coding_.feedback);
    std::byte* into = wire.data();
    for (int rank = 0; rank < info.ranks; ++rank) {
      const std::byte* const begin = into;
      for (std::size_t i = 0; i < tensors_.size(); ++i) into = encode(tensors_[i], compensated[i], rank, into);
      lengths_.push_back(static_cast<std::size_t>(into - begin));
      average_lengths_.push_back(length_of_averages(rank));
    }
    const auto written = static_cast<std::size_t>(into - wire.data());
    return {Combine::scatter, Buffer(wire.data(), written, DType::u8), lengths_};
  }

  [[nodiscard]] std::optional<Round> next(Answer answer) override {
    if (std::exchange(is_gathered_, true)) {
      take_averages(answer);
      return std::nullopt;
    }
    // Not in place: averages may be longer than the packets, and this rank's own packet is still in the wire.
    const base::Bytes averages = wire_.last(average_lengths_[static_cast<std::size_t>(info_.rank)]);
    add_up(answer, averages);
    return Round{.combine = Combine::gather,
                 .payload = Buffer(averages.data(), averages.size(), DType::u8),
                 .lengths = average_lengths_,
                 .ends = true};
  }

  void add(base::ConstBytes packet, std::span<float> into) const override {
    const Quantiser& quantiser = *coding_.packets;
    if (packet.size() != bytes_of(quantiser, into.size()))
      throw Corrupt(fmt::format("a packet of {} bytes for {} elements", packet.size(), into.size()));
    const std::byte* from = packet.data();
    each_group({0, into.size()}, [&](Range group) {
      float decoded[kMostGroup];
      quantiser.decode(from, {decoded, group.size()});
      kernel::reduce({}, bytes(into.data() + group.begin), bytes(decoded), group.size());
      from += quantiser.bytes(group.size());
    });
  }

 private:
  [[nodiscard]] Range part(const Tensor& tensor, int rank) const {
    return part_of(tensor, coding_.packets->group(), {.rank = rank, .ranks = info_.ranks});
  }

  /// Calls work(group) for each group of a range that begins at a group boundary.
  template <class Work>
  void each_group(Range range, Work work) const {
    for (std::size_t begin = range.begin; begin < range.end; begin += coding_.packets->group())
      work(Range{begin, std::min(begin + coding_.packets->group(), range.end)});
  }

  [[nodiscard]] base::CounterRandom random(const Tensor& tensor, int rank) const {
    return {tensor.key, info_.step, static_cast<std::uint64_t>(rank)};
  }

  /// Prefetches the next group while this one is encoded in several passes; this saves a quarter of the time.
  static void fetch(const Tensor& tensor, Range next) {
    constexpr std::size_t line = 64 / sizeof(float);
    const auto* const elements = static_cast<const float*>(tensor.values.data);
    for (std::size_t i = next.begin; i < next.end; i += line) __builtin_prefetch(elements + i);
  }

  /// Encodes the part of this rank's tensor that `rank` owns. Returns the end of the written bytes.
  [[nodiscard]] std::byte* encode(const Tensor& tensor, const Compensated& compensated, int rank,
                                  std::byte* into) const {
    const Quantiser& quantiser = *coding_.packets;
    const base::CounterRandom words = random(tensor, info_.rank);
    each_group(part(tensor, rank), [&](Range group) {
      fetch(tensor, {group.end, std::min(group.end + group.size(), tensor.values.count)});
      compensated.form(group);
      const std::span values(compensated.elements() + group.begin, group.size());
      quantiser.encode(values, words.bits(group.begin), into);
      if (compensated.keeps()) {
        float sent[kMostGroup];
        quantiser.decode(into, {sent, group.size()});
        compensated.sent(group, sent);
      }
      into += quantiser.bytes(group.size());
    });
    return into;
  }

  /// Sums this rank's parts and encodes their averages.
  void add_up(Answer answer, base::Bytes into) const {
    if (elements_of(tensors_) == 0) return;
    require_lengths(answer, std::vector(answer.packets.size(), lengths_[static_cast<std::size_t>(info_.rank)]));
    std::size_t at = 0, written = 0;
    for (const Tensor& tensor : tensors_) {
      const base::CounterRandom words = random(tensor, info_.ranks);
      const Range owned = part(tensor, info_.rank);
      each_group(owned, [&](Range group) {
        float room[kMostGroup];
        const std::span average(room, group.size());
        add_packets(answer, at, average);
        encode_average(average, {.tensor = tensor, .at = group.begin - owned.begin, .word = words.bits(group.begin)},
                       into.data() + written);
        at += coding_.packets->bytes(group.size());
        written += coding_.averages->bytes(group.size());
      });
    }
  }

  /// Averages the group that starts at byte `at` of every packet.
  void add_packets(Answer answer, std::size_t at, std::span<float> average) const {
    coding_.packets->decode(answer.packets.front().data() + at, average);
    for (const base::ConstBytes packet : answer.packets.subspan(1)) {
      float room[kMostGroup];
      coding_.packets->decode(packet.data() + at, {room, average.size()});
      kernel::reduce({.dtype = DType::f32}, bytes(average.data()), bytes(room), average.size());
    }
    kernel::finish({.dtype = DType::f32, .op = ReduceOp::average, .divisor = info_.ranks}, bytes(average.data()),
                   average.size());
  }

  /// A group of this rank's part.
  struct Owned {
    const Tensor& tensor;
    std::size_t at;      ///< position of its first element in the part
    std::uint64_t word;  ///< random bits
  };

  void encode_average(std::span<float> average, const Owned& group, std::byte* into) const {
    const Quantiser& quantiser = *coding_.averages;
    if (!keeps()) return quantiser.encode(average, group.word, into);
    const float* const residual = reinterpret_cast<const float*>(group.tensor.kept.data()) + group.at;
    float* const next = reinterpret_cast<float*>(group.tensor.next.data()) + group.at;
    kernel::reduce({.dtype = DType::f32}, bytes(average.data()), bytes(residual), average.size());
    quantiser.encode(average, group.word, into);
    quantiser.decode(into, {next, average.size()});
    for (std::size_t i = 0; i < average.size(); ++i) next[i] = average[i] - next[i];
  }

  /// Decodes the averages of all ranks' parts, including this rank's own.
  void take_averages(Answer answer) const {
    if (elements_of(tensors_) == 0) return;
    require_lengths(answer, average_lengths_);
    for (int rank = 0; rank < info_.ranks; ++rank) {
      const std::byte* from = answer.packets[static_cast<std::size_t>(rank)].data();
      for (const Tensor& tensor : tensors_)
        each_group(part(tensor, rank), [&](Range group) {
          coding_.averages->decode(from, {static_cast<float*>(tensor.values.data) + group.begin, group.size()});
          from += coding_.averages->bytes(group.size());
        });
    }
  }

  void require_lengths(Answer answer, std::span<const std::size_t> lengths) const {
    if (answer.packets.size() != static_cast<std::size_t>(info_.ranks))
      throw Corrupt(fmt::format("{} quantised packets arrived from {} ranks", answer.packets.size(), info_.ranks));
    for (std::size_t rank = 0; rank < answer.packets.size(); ++rank)
      if (answer.packets[rank].size() != lengths[rank])
        throw Corrupt(fmt::format("the quantised packet of rank {} has {} bytes instead of {}", rank,
                                  answer.packets[rank].size(), lengths[rank]));
  }

  [[nodiscard]] std::size_t length_of_averages(int rank) const {
    std::size_t length = 0;
    for (const Tensor& tensor : tensors_) length += bytes_of(*coding_.averages, part(tensor, rank).size());
    return length;
  }
  [[nodiscard]] bool keeps() const { return coding_.feedback.kind != Feedback::Kind::none; }

  const Coding coding_;
  std::span<const Tensor> tensors_;
  StepInfo info_;
  base::Bytes wire_;
  std::vector<std::size_t> lengths_;          ///< of every rank's parts
  std::vector<std::size_t> average_lengths_;  ///< of their averages
  bool is_gathered_ = false;                  ///< the gather round was returned
};

}  // namespace

std::unique_ptr<Coder> scattering_coder(Coding coding) { return std::make_unique<ScatteringCoder>(std::move(coding)); }

namespace {

std::size_t bytes_of_all(const Quantiser& quantiser, std::span<const Tensor> tensors) {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += bytes_of(quantiser, tensor.values.count);
  return bytes;
}

}  // namespace

std::size_t scattering_bytes(const Coding& coding, std::span<const Tensor> tensors) {
  return bytes_of_all(*coding.packets, tensors) + bytes_of_all(*coding.averages, tensors);
}

std::vector<RoundBytes> scattering_rounds(const Coding& coding, std::span<const Tensor> tensors) {
  return {{Combine::scatter, static_cast<double>(bytes_of_all(*coding.packets, tensors))},
          {Combine::gather, static_cast<double>(bytes_of_all(*coding.averages, tensors)), 1}};
}

std::size_t owner_bytes(const Quantiser& quantiser, const Feedback& feedback, const Tensor& tensor, int ranks) {
  if (feedback.kind == Feedback::Kind::none) return 0;
  return most_of(tensor, quantiser.group(), ranks) * sizeof(float);
}

}  // namespace syncopate::compress::quantised
