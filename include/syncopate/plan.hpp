// Plans: a collective algorithm for one rank, as a value that can be executed, verified, priced and drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "syncopate/cluster.hpp"
#include "syncopate/collective.hpp"

namespace syncopate {

/// The action of a step on a run of chunks. A step waits for the earlier steps of its rank that touch its chunks.
enum class Act : std::uint8_t { send, receive, receive_reduce };

struct PlanStep {
  Act act = Act::send;
  std::uint32_t peer = 0;
  std::uint32_t first_chunk = 0;  ///< the run is [first_chunk, first_chunk + chunk_count)
  std::uint32_t chunk_count = 0;
  bool completes = false;  ///< receive_reduce only: these chunks now hold the contributions of all ranks
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// One rank's steps of a collective on a vector of `chunks` chunks, which are even unless the call gives lengths. An
/// alltoall or alltoall_v has 2 x ranks chunks: chunk c is part c of `in`, chunk ranks + c is part c of `out`. Sends to
/// one peer leave in list order, and receives from one peer are matched in list order. Only this and the rule of `Act`
/// order the steps.
struct Plan {
  std::uint32_t chunks = 1;
  std::vector<PlanStep> steps;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Bytes of a barrier's vector: one number that is reduced.
inline constexpr std::uint64_t kBarrierBytes = 4;

/// The collective to plan.
struct PlanRequest {
  Collective collective = Collective::allreduce;
  std::string algorithm = "auto";
  int ranks = 1;
  int root = 0;
  std::uint64_t bytes = 0;  ///< bytes of the full vector (alltoall: of `in`); ignored for a barrier
  Tuning tuning;
  std::vector<std::uint32_t> hosts;  ///< host number of each rank; empty: by ranks_per_host
  std::uint32_t ranks_per_host = 0;  ///< neighbouring ranks per host; 0: all ranks share one host
  Scope scope = Scope::group;        ///< the ranks that run it together; `root` is the root of every such set
  friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
};

/// Seconds of one exchange as a function of its bytes: rows of (bytes, seconds) with ascending bytes and linear
/// interpolation. Below the first row its time holds; above the last row the last slope continues.
struct ExchangeCost {
  std::vector<std::pair<double, double>> table;
  double cpu_s_per_byte = 0;  ///< CPU time per exchanged byte that computing on the same rank loses
  friend bool operator==(const ExchangeCost&, const ExchangeCost&) = default;
};

/// One leg of an exchange: a collective, or `messages` messages one after the other. The collective (by
/// PlanRequest::bytes) or each message has `share` times the bytes of the bucket's gradients plus `fixed_bytes`.
struct ExchangeLeg {
  Collective collective = Collective::allreduce;
  Scope scope = Scope::group;
  double share = 1;
  double fixed_bytes = 0;
  int messages = 0;  ///< 0: a collective
  int at_once = 1;   ///< ranks of a host that run this leg across hosts at the same time, through one port
  friend bool operator==(const ExchangeLeg&, const ExchangeLeg&) = default;
};

/// The cost of an exchange with a codec: its legs one after the other, and coding on the rank's own core.
struct ExchangeLaw {
  std::vector<ExchangeLeg> legs;  ///< empty: an all-reduce of the gradients as they are
  bool coding_is_known = true;    ///< false: 0 s are assumed
  bool density_is_known = true;   ///< false: the codec has a threshold, and a usual density is assumed
  double coding_s_per_byte = 0;   ///< encoding this rank's packet and decoding what arrives, per byte of gradients
};

struct PlanPrice {
  std::string algorithm;                  ///< the algorithm that "auto" chose
  std::uint32_t rounds = 0;               ///< makespan in chunks, if every rank has one send port and one receive port
  std::uint64_t wire_bytes_per_rank = 0;  ///< bytes sent by the rank that sends the most
  double predicted_s = 0;                 ///< from a replay of the plans
};

/// An algorithm with its cost by law and its measured cost, for the requested size.
struct RankedAlgorithm {
  std::string algorithm;
  double law_s = 0;
  std::optional<double> measured_s{};
};

/// The plan of every rank; empty for a rank outside the scope. Throws Misuse (unknown algorithm, a collective that it
/// does not offer, root out of range, a grid that does not fit, a negative cost).
[[nodiscard]] std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost = {});
/// Proves by symbolic execution on sets of ranks that the plans compute the collective and cannot block. Returns an
/// empty string, or what is wrong.
[[nodiscard]] std::string verify_plans(const std::vector<Plan>& plans, Collective collective, int root);
/// Verifies plans for a scope: also proves that no rank exchanges messages with a rank outside its set.
[[nodiscard]] std::string verify_plans(const std::vector<Plan>& plans, const PlanRequest& request);
/// Verifies plan_collective(request, cost). If every plan is a rotation of rank 0's, as in a ring, only rank 0's plan
/// is executed, so that thousands of ranks take no longer than a few.
[[nodiscard]] std::string verify_plans(const PlanRequest& request, const NetworkCost& cost = {});
/// The price of the set of ranks that takes longest.
[[nodiscard]] PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost = {});
/// All algorithms that offer the collective and suit the request, in the order in which "auto" prefers them: first
/// those with measured times for that number of ranks, then the others by their cost laws.
[[nodiscard]] std::vector<RankedAlgorithm> sort_algorithms(const PlanRequest& request, const NetworkCost& cost = {});
/// The plans as text: one row per rank, one column per round.
[[nodiscard]] std::string draw_plans(const PlanRequest& request, const NetworkCost& cost = {});

}  // namespace syncopate
