// Buckets: where each gradient lies (Arena), and gradients that travel together, in groups that are coded alike.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sync/codec_state.hpp"
#include "sync/cut.hpp"
#include "sync/exchange.hpp"
#include "syncopate/policy.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// Buckets are lists of spans of it, so merging and re-planning copy nothing.
class Arena final {
 public:
  Arena(Group& group, const std::vector<Gradient>& gradients);
  /// Without memory of its own: gradients have no address until they are placed.
  explicit Arena(const std::vector<Gradient>& gradients);

  /// Only without memory of its own; as many elements as the gradient has, of its type or of that to which its codec
  /// casts.
  void place(std::size_t i, Buffer values) noexcept { slots_[i] = values; }

  [[nodiscard]] std::size_t count() const noexcept { return slots_.size(); }  ///< gradients
  [[nodiscard]] Buffer gradient(std::size_t i) const noexcept { return slots_[i]; }
  [[nodiscard]] std::size_t bytes_of(std::size_t first, std::size_t last) const noexcept;  ///< of gradients
  [[nodiscard]] const std::vector<std::shared_ptr<std::byte[]>>& memory() const noexcept { return memory_; }
  /// One vector per type in use.
  [[nodiscard]] const std::vector<Buffer>& vectors() const noexcept { return vectors_; }

 private:
  std::vector<std::shared_ptr<std::byte[]>> memory_;
  std::vector<Buffer> vectors_;
  std::vector<Buffer> slots_;
};

class WeightUpdater;

/// More buckets than this for each gradient are dropped between steps: a bucket owns memory for its payloads.
inline constexpr std::size_t kKeptPerGradient = 4;

/// A 16-bit vector and its copy in f32, which a coder gets in its place.
struct Upcast {
  Buffer halves, floats;
};

/// Gradients that their coder gets in one type and that are all coded alike, or all sent uncoded: they share rounds.
struct CodingGroup {
  std::unique_ptr<compress::Coder> coder;
  std::vector<std::size_t> gradients;
  std::vector<compress::Tensor> whole;  ///< the gradients, in the arena or in `upcast`
  std::vector<compress::Tensor> part;   ///< this rank's rows of the gradients: what the coder sees
  std::shared_ptr<std::byte[]> wire;    ///< memory for payloads, in the group's memory
  std::size_t wire_bytes = 0;
  std::shared_ptr<std::byte[]> packed;  ///< memory of the exchange, if it narrows
  std::shared_ptr<std::byte[]> upcast;  ///< memory for copies, in the group's memory
  std::vector<Upcast> gradients_upcast, weights_upcast;
  bool is_coded = false;  ///< by a codec, not sent as they are
  // Within a step:
  AnswerMemory answers{};
  std::optional<compress::Round> round{};    ///< the coder's last round, until it is answered
  std::optional<compress::Answer> answer{};  ///< the last one, until it is decoded
};

struct Bucket {
  std::string name;  ///< names of the first and the last gradient
  std::size_t bytes = 0;
  std::vector<CodingGroup> groups;
  std::vector<Buffer> weights;      ///< of its gradients, merged where they adjoin in memory; see weight_updater
  std::size_t first = 0, last = 0;  ///< gradients
};

/// The inputs from which buckets are created. They must outlive the buckets.
struct BucketInputs {
  Group& group;
  const std::vector<Gradient>& gradients;
  const Arena& arena;
  const std::vector<compress::Settings>& settings;  ///< of every gradient
  const RowShare& share;
  const Cut& cut;
  std::uint64_t seed = 0;
  std::span<const Buffer> weights{};  ///< of every gradient; used if the codec wants them
};

/// Gradient i as a tensor in the arena; and this rank's rows of it (without values if they are not all rows). Both with
/// their weights if the codec wants them. Without values too where the coder gets another type: a bucket has the copy.
[[nodiscard]] compress::Tensor whole_tensor(const BucketInputs& inputs, std::size_t i);
[[nodiscard]] compress::Tensor part_tensor(const BucketInputs& inputs, std::size_t i);
/// Bytes of state between steps for every gradient's part.
[[nodiscard]] std::vector<std::size_t> state_bytes(const BucketInputs& inputs);

/// A bucket of these gradients, in this order, without weights.
[[nodiscard]] Bucket bucket_of(const BucketInputs& inputs, std::span<const std::size_t> gradients);
/// Points a bucket's tensors to the present addresses of its gradients in the arena.
void follow(Bucket& bucket, const BucketInputs& inputs);

/// Creates a bucket for each range of gradients that leaves together. Used from one thread at a time.
class Buckets final {
 public:
  Buckets(const BucketInputs& inputs, const WeightUpdater& updater) : inputs_(inputs), updater_(updater) {}

  [[nodiscard]] Bucket& of(const schedule::Bucket& bucket);
  [[nodiscard]] std::string name_of(const schedule::Bucket& bucket) const;
  /// Call between steps: drops all buckets if a policy that decides during the step has created too many.
  void limit();

 private:
  const BucketInputs inputs_;
  const WeightUpdater& updater_;
  std::map<std::pair<std::size_t, std::size_t>, Bucket> buckets_;
};

}  // namespace syncopate::sync
