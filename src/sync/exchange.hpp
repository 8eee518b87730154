// Exchange: an entry of the shelf exchange/: how it answers the rounds of a codec, and who updates weights.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compress/codec.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/group.hpp"
#include "syncopate/synchronizer.hpp"

namespace syncopate::sync {

/// The only rank that updates, under exchanges with a single updater; its weights are broadcast.
inline constexpr int kRoot = 0;

/// Memory for answers, reused from round to round. Used by the communication thread.
class AnswerMemory final {
 public:
  /// Memory for the given number of bytes of each rank, in the order of ranks. Valid until the next call.
  [[nodiscard]] base::Bytes take(Group& group, std::span<const std::size_t> lengths);
  [[nodiscard]] compress::Answer answer() const noexcept { return {.packets = answer_}; }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
  std::vector<base::ConstBytes> answer_;
};

/// The inputs of an exchange for one bucket.
struct ExchangeContext {
  Group& group;
  const std::string& algorithm;  ///< for its collectives
  const std::string& name;       ///< the bucket's name, for error messages
  AnswerMemory& memory;
};

class Cut;

/// The ranks that take part in a codec's rounds, and this rank's share of every gradient's rows: part `index` of
/// `count` (Cut). A rank whose `index` is not below `count` has no rows: it only takes part in narrowing and widening,
/// and its coder sees tensors without rows.
struct RowShare {
  int rank = 0, ranks = 1;
  std::size_t index = 0, count = 1;
  bool is_shard = false;  ///< parts are the shards that ranks update (optimizer.hpp), not even parts of the rows
};

/// The tensors of a coding group, and this rank's rows of them, between which an exchange narrows and widens.
struct NarrowedTensors {
  std::span<const compress::Tensor> whole;
  std::span<compress::Tensor> part;        ///< `narrow` sets `values`
  std::shared_ptr<std::byte[]>& packed;    ///< memory of the exchange, kept for the next step
  std::span<const std::size_t> gradients;  ///< which ones they are
  const Cut& cut;
};

/// An exchange with two stages: gradients are combined outside the codec's rounds too.
struct Narrowing {
  /// Before the rounds: combines gradients among the ranks outside the share's rounds; `part` then holds this rank's
  /// rows.
  void (*narrow)(const ExchangeContext& context, const NarrowedTensors& gradients);
  /// After the rounds: every rank gets all rows back.
  void (*widen)(const ExchangeContext& context, const NarrowedTensors& gradients);
  Scope over = Scope::host;
};

/// The exchange ends with combined gradients, which the caller applies.
struct EndsInGradients {};
/// Rank kRoot or every rank updates; then the root's weights are sent to all ranks.
struct BroadcastsWeights {
  Updater updater;  ///< root or every_rank
  void (*broadcast)(const ExchangeContext& context, Buffer weights);
  bool always = true;  ///< in every step; otherwise every `SynchronizerOptions::broadcast_every` steps
};
/// Every rank updates its shard; then every rank gets all weights, in place of the gradients of `whole`.
struct GathersWeights {
  void (*gather)(const ExchangeContext& context, const NarrowedTensors& weights);
};
using Ending = std::variant<EndsInGradients, BroadcastsWeights, GathersWeights>;

struct Exchange {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  compress::CombineSet serves;
  /// Every rank gets the answers. Codecs with several rounds need that.
  bool answers_everywhere = true;
  /// Rounds are between ranks. Where none are left to have them, gradients travel uncoded.
  bool codes = true;
  /// The collectives that the chosen algorithm must offer.
  std::span<const Collective> collectives{};
  /// Answers a round: with the average, or with the packets of all ranks; on every rank that updates.
  compress::Answer (*combine)(const ExchangeContext& context, const compress::Round& round);
  /// This rank's share of every gradient; null: all rows, in rounds among all ranks of the group.
  RowShare (*share)(Group& group) = nullptr;
  std::optional<Narrowing> narrowing{};
  Ending ending{};

  [[nodiscard]] Updater updater() const noexcept;
};

/// Every exchange, by name (generated from the folder exchange/).
[[nodiscard]] std::span<const Exchange* const> exchanges();
[[nodiscard]] const Exchange& exchange_named(std::string_view name);  ///< throws Misuse that lists them
/// Throws Misuse where the codec needs rounds that the exchange does not serve, or the algorithm (a name, or "auto")
/// does not offer the exchange's collectives.
void require_fit(const Exchange& exchange, const compress::Codec& codec, std::string_view algorithm,
                 const Catalogue& catalogue = {});
[[nodiscard]] RowShare share_of(const Exchange& exchange, Group& group);

// Building blocks of exchanges. All run on the communication thread and sleep while they wait, because the backward
// pass needs the core.

void run(Group& group, Collective collective, Buffer data, CollectiveOptions options);
/// The named algorithm if it offers the collective, else "auto".
[[nodiscard]] std::string_view algorithm_for(Collective collective, std::string_view algorithm);
/// Answers rounds among the ranks of a scope: additive rounds by an all-reduce, gather rounds by an all-gather of
/// uneven parts, scatter rounds by an uneven all-to-all, mergeable ones by messages along a tree. The answers of a rank
/// outside the scope are empty.
[[nodiscard]] compress::Answer combine_among(Scope scope, const ExchangeContext& context, const compress::Round& round);
[[nodiscard]] compress::Answer combine_among_all(const ExchangeContext& context, const compress::Round& round);
/// Answers a gather or mergeable round on the root; the answers of the other ranks are empty.
[[nodiscard]] compress::Answer combine_at_root(const ExchangeContext& context, const compress::Round& round);

}  // namespace syncopate::sync
