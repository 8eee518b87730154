// Exchange: one entry of the shelf exchange/: how it answers the rounds of a codec, and who updates weights.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/codec.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// The rank that updates where only one does, and whose weights the others get.
inline constexpr int kRoot = 0;

/// Memory for answers, kept from round to round. Used by the communication thread.
class AnswerMemory final {
 public:
  /// So many bytes of each rank, one behind the other. Valid until the next call.
  [[nodiscard]] base::Bytes take(Group& group, std::span<const std::size_t> lengths);
  [[nodiscard]] compress::Answer answer() const noexcept { return answer_; }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
  std::vector<base::ConstBytes> answer_;
};

/// What an exchange works with for one bucket.
struct ExchangeContext {
  Group& group;
  const std::string& algorithm;  ///< of its collectives
  std::string name;              ///< the bucket, for error messages
  AnswerMemory& memory;
};

/// The ranks among which a codec's rounds take place, and which rows of every gradient this rank has there: part
/// `index` of `count` (even_part of its rows); none where `index` is not below `count`: such a rank takes part in the
/// narrowing and widening only, and its coder sees tensors without rows.
struct Share {
  int rank = 0, ranks = 1;
  std::size_t index = 0, count = 1;
};

/// Gradients of a bucket that are coded alike, as an exchange narrows them to this rank's rows and widens them again.
struct Shared {
  std::span<const compress::Tensor> whole;
  std::span<compress::Tensor> part;      ///< `values` is set by `narrow`
  std::shared_ptr<std::byte[]>& packed;  ///< the exchange's, kept for the next step
};

/// It ends in one of two values: a combined gradient (`updater` is the caller), or updated weights.
struct Exchange {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  Updater updater = Updater::caller;
  compress::CombineSet serves;
  /// Codecs whose conversation goes on after the first answer need one on every rank.
  bool answers_everywhere = true;
  /// What its first algorithm must offer.
  std::span<const Collective> collectives{};
  /// Answers a round: the average or the packets of all ranks, on every rank that updates.
  compress::Answer (*combine)(const ExchangeContext& context, const compress::Round& round);
  /// Brings the root's `weights` to every rank; null where it ends in gradients.
  void (*spread)(const ExchangeContext& context, Buffer weights) = nullptr;
  /// Weights are spread in every step; otherwise in every `SynchronizerOptions::broadcast_every`-th.
  bool spreads_always = true;
  /// This rank's share of every gradient; null: the whole of it, and rounds among all ranks of the group.
  Share (*share)(Group& group) = nullptr;
  /// Before the rounds: combines within the share's other ranks, so that `part` holds this rank's rows. And after them:
  /// every rank gets all rows back. Null where `share` is.
  void (*narrow)(const ExchangeContext& context, const Shared& gradients) = nullptr;
  void (*widen)(const ExchangeContext& context, const Shared& gradients) = nullptr;
};

/// Every exchange, by name (generated from the folder exchange/).
[[nodiscard]] std::span<const Exchange* const> exchanges();
[[nodiscard]] const Exchange& exchange_named(std::string_view name);  ///< throws Misuse that lists them
/// Throws Misuse where the codec needs rounds that the exchange does not serve, or the algorithm (a name, or "auto")
/// does not offer the exchange's collectives.
void require_fit(const Exchange& exchange, const compress::Codec& codec, std::string_view algorithm);
[[nodiscard]] Share share_of(const Exchange& exchange, Group& group);

// What exchanges are made of. All run on the communication thread and do not stay awake while they wait: the backward
// pass needs the core.

void run(Group& group, Collective collective, Buffer data, const CollectiveOptions& options);
/// The named algorithm where it offers the collective, else "auto".
[[nodiscard]] std::string algorithm_for(Collective collective, const std::string& algorithm);
/// Among the ranks of a scope: additive rounds by an all-reduce, gather rounds by an all-gather of uneven parts,
/// scatter rounds by an uneven all-to-all. The answers of a rank that takes no part are empty.
[[nodiscard]] compress::Answer combine_among(Scope scope, const ExchangeContext& context, const compress::Round& round);
[[nodiscard]] compress::Answer combine_among_all(const ExchangeContext& context, const compress::Round& round);

}  // namespace syncopate::sync
