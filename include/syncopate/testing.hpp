// Testing: checks that a program's own components obey the laws of their kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "syncopate/codec.hpp"
#include "syncopate/consistency.hpp"
#include "syncopate/placement.hpp"
#include "syncopate/policy.hpp"
#include "syncopate/storage.hpp"

namespace syncopate {

/// The first law that a component broke, and the case that shows it: the same check with this seed finds it again.
struct BrokenLaw {
  std::string law;         ///< one of the quoted names in the check's comment
  std::string text;        ///< a sentence with the component, the case, the values and the law
  std::uint64_t seed = 0;  ///< of the case
  std::size_t worker = 0;  ///< check_consistency only: the worker that saw it
  std::int64_t step = 0;   ///< check_consistency only: the step of this worker
};

struct ConsistencyCheck {
  std::string parameter{};              ///< the text after the colon in `name:PARAMETER`; empty: its default
  std::optional<std::int64_t> bound{};  ///< promised staleness, in steps; empty: no bound is promised
  std::uint64_t seed = 0;               ///< of the first history, which is one job from start to end
  std::uint64_t histories = 100;        ///< with consecutive seeds
  std::int64_t steps = 40;              ///< of every worker
  std::size_t most_workers = 5, most_servers = 3;
};

/// Runs jobs of a parameter server in virtual time, with the state machines that training uses. The seed determines the
/// numbers of workers and servers, speeds and delays. Laws:
/// "bounded staleness": step c computes with all updates of every worker's first c - bound steps;
/// "read my writes": a step computes with all earlier updates of its own worker;
/// "no deadlock": every worker ends its steps;
/// "equal decisions": the same history runs equally again;
/// "no exception": the model's functions do not throw.
/// Returns the first broken law; empty if there is none. Throws Misuse: a name or parameter that is not allowed, or a
/// limit below 1.
[[nodiscard]] std::optional<BrokenLaw> check_consistency(const server::Consistency& model,
                                                         const ConsistencyCheck& with = {});

struct StorageCheck {
  std::string parameter{};   ///< the text after the colon in `name:PARAMETER`; empty: its default
  std::uint64_t seed = 0;    ///< of the first case, which is one job
  std::uint64_t cases = 20;  ///< with consecutive seeds
  std::int64_t steps = 8;    ///< of every worker
  std::size_t most_workers = 4, most_elements = 300;  ///< elements: of each of two tables
  /// Memory that Storages::load and store understand, for this number of weights, valid until the check returns. Empty:
  /// memory of the processor, of f32.
  std::function<Buffer(std::size_t elements)> memory{};
};
/// Runs jobs of a parameter server, under bsp and ssp:1, with and without a codec. The seed determines the number of
/// workers, the lengths of the tables, and the gradients. Laws:
/// "equal weights": all workers end with the same bits;
/// "equal bits": the same job ends with them again;
/// "nothing remembered": a replica that joins when half of the steps are made ends with its server's state;
/// "equal memory": `load` returns what `store` wrote and `load` returned before;
/// "no deadlock"; "no exception".
/// Returns and throws as check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_storage(const server::Storage& storage, const StorageCheck& with = {});

struct PlacementCheck {
  std::uint64_t seed = 0;     ///< of the first case
  std::uint64_t cases = 200;  ///< with consecutive seeds
  std::size_t most_tables = 40, most_servers = 12;
};

/// Places tables on servers; the seed determines their numbers and sizes. Laws:
/// "every byte once": each byte of each table is in one shard; shards are sorted by table and range, and cut at
/// multiples of Demand::grain_bytes;
/// "maximum load": no server keeps more than Placement::most_bytes;
/// "equal shards": a second call returns the same;
/// "no exception".
/// Returns and throws as check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_placement(const server::Placement& placement,
                                                       const PlacementCheck& with = {});

struct PolicyCheck {
  std::uint64_t seed = 0;     ///< of the first case
  std::uint64_t cases = 200;  ///< with consecutive seeds
  std::size_t most_layers = 60;
};

/// Partitions timelines that the seed determines, with options that it determines too. If a policy needs only sizes,
/// every second timeline has neither times nor a cost. Laws:
/// "every gradient once": each is in exactly one bucket, and the last layer's bucket comes first;
/// "equal buckets": a second call returns the same;
/// "no exception".
/// Returns and throws as check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_policy(const schedule::Policy& policy, const PolicyCheck& with = {});

struct CodecCheck {
  std::string parameter{};   ///< the text after the colon in `name:PARAMETER`; empty: its default
  std::uint64_t seed = 0;    ///< of the first case
  std::uint64_t cases = 50;  ///< with consecutive seeds
  int most_ranks = 5;
  std::size_t most_elements = 2000;  ///< of a gradient
};

/// Codes gradients for three steps, with residual feedback if Codec::feedback is sound or maskable. The seed determines
/// the number of ranks and the gradients. Laws:
/// "equal bits": after a step every rank holds the same bits;
/// "equal rounds": ranks combine the same rounds in the same way, and a payload is within Codec::wire_bytes;
/// "nothing lost": with feedback, on one rank r' = fl(fl(g + r) - average) bit for bit, where g is the gradient, r and
/// r' are the residual before and after, and fl rounds to f32; on several ranks the averages of both sides differ by
/// rounding only. Not for codecs that scatter, because a part's owner encodes it again;
/// "equal steps": the same case codes equally again;
/// "no exception".
/// They also hold for Codec::coder_alone. Gradients that the codec does not code are skipped. Returns and throws as
/// check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_codec(const compress::Codec& codec, const CodecCheck& with = {});

}  // namespace syncopate
