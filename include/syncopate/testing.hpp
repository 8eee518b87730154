// Testing: checks that a program's own consistency model, placement, policy or codec obeys the laws of its kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "syncopate/codec.hpp"
#include "syncopate/consistency.hpp"
#include "syncopate/placement.hpp"
#include "syncopate/policy.hpp"

namespace syncopate {

/// The first law that a component broke, and the case that shows it: the same call with this seed finds it again.
struct BrokenLaw {
  std::string law;         ///< one of those that the check's comment quotes
  std::string text;        ///< a sentence with the component, the case, the values and the law
  std::uint64_t seed = 0;  ///< of the case
  std::size_t worker = 0;  ///< of a consistency model's history
  std::int64_t step = 0;   ///< of this worker
};

struct ConsistencyCheck {
  std::string parameter{};              ///< the text after the colon in `name:PARAMETER`; empty: its default
  std::optional<std::int64_t> bound{};  ///< promised staleness, in steps; empty: no bound is promised
  std::uint64_t seed = 0;               ///< of the first history
  std::uint64_t histories = 100;        ///< with consecutive seeds
  std::int64_t steps = 40;              ///< of every worker
  std::size_t most_workers = 5, most_servers = 3;
};

/// Runs jobs of a parameter server in virtual time: drawn numbers of workers and servers, speeds and delays, and the
/// state machines that training uses. Laws:
/// "bounded staleness": a step computes with all updates of every worker's first step - bound steps;
/// "read my writes": and with all of its worker's own;
/// "no deadlock": every worker ends its steps;
/// "equal decisions": the same history runs equally again;
/// "no exception": the model's functions do not throw.
/// Returns the first broken law; empty if there is none. Throws Misuse: a name or parameter that is not allowed, or a
/// limit below 1.
[[nodiscard]] std::optional<BrokenLaw> check_consistency(const server::Consistency& model,
                                                         const ConsistencyCheck& with = {});

struct PlacementCheck {
  std::uint64_t seed = 0;     ///< of the first demand
  std::uint64_t cases = 200;  ///< drawn demands, with consecutive seeds
  std::size_t most_tables = 40, most_servers = 12;
};

/// Places drawn tables on drawn numbers of servers. Laws:
/// "every byte once": the shards hold each byte of each table once, by table and range, cut at the grain;
/// "maximum load": no server keeps more than Placement::most_bytes;
/// "equal shards": a second call returns the same;
/// "no exception".
/// Returns and throws as check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_placement(const server::Placement& placement,
                                                       const PlacementCheck& with = {});

struct PolicyCheck {
  std::uint64_t seed = 0;     ///< of the first timeline
  std::uint64_t cases = 200;  ///< drawn timelines, with consecutive seeds
  std::size_t most_layers = 60;
};

/// Partitions drawn timelines, with drawn options. Every second timeline of a policy that needs sizes alone has neither
/// times nor a cost. Laws:
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

/// Codes drawn gradients for three steps on drawn numbers of ranks, with residual feedback if it is sound. Laws:
/// "equal bits": after a step every rank holds the same bits;
/// "equal rounds": ranks combine the same rounds in the same way, and a payload is within Codec::wire_bytes;
/// "nothing lost": with feedback, on one rank r' = fl(fl(g + r) - average) bit for bit; on several the averages of both
/// sides differ by rounding only. Not for codecs that scatter, because a part's owner encodes it again;
/// "equal steps": the same case codes equally again;
/// "no exception".
/// Gradients that the codec does not code are skipped. Returns and throws as check_consistency.
[[nodiscard]] std::optional<BrokenLaw> check_codec(const compress::Codec& codec, const CodecCheck& with = {});

}  // namespace syncopate
