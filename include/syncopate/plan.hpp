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

/// What a rank does with a run of chunks. An operation waits for the earlier ones of its rank that touch its chunks.
enum class Act : std::uint8_t { send, receive, receive_reduce };

struct PlanStep {
  Act act = Act::send;
  std::uint32_t peer = 0;
  std::uint32_t first_chunk = 0;  ///< the run is [first_chunk, first_chunk + chunk_count)
  std::uint32_t chunk_count = 0;
  bool completes = false;  ///< receive_reduce only: afterwards these chunks hold every rank's contribution
  friend bool operator==(const PlanStep&, const PlanStep&) = default;
};

/// One rank's part of a collective on a vector cut into `chunks` parts, even ones unless the call gives lengths. An
/// alltoall (or alltoall_v) has 2 x ranks chunks: chunk c is part c of `in`, chunk ranks + c part c of `out`. Steps to
/// (from) one peer leave (arrive) in list order; that and the waiting rule above are the only order.
struct Plan {
  std::uint32_t chunks = 1;
  std::vector<PlanStep> steps;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// What a barrier carries: one number that is reduced.
inline constexpr std::uint64_t kBarrierBytes = 4;

/// What to plan.
struct PlanRequest {
  Collective collective = Collective::allreduce;
  std::string algorithm = "auto";
  int ranks = 1;
  int root = 0;
  std::uint64_t bytes = 0;  ///< of the full vector (of `in`); a barrier has its own 4
  Tuning tuning;
  std::vector<std::uint32_t> hosts;  ///< by rank: equal numbers share a host; empty: as the next line says
  std::uint32_t ranks_per_host = 0;  ///< so many neighbouring ranks share a host; 0: all do
  Scope scope = Scope::group;        ///< which of them carry it out together; roots are those of every such part
  friend bool operator==(const PlanRequest&, const PlanRequest&) = default;
};

/// Seconds that one exchange takes by its bytes: rows (bytes, seconds) with ascending bytes, straight lines between
/// them, the first time below them, the last slope beyond.
struct ExchangeCost {
  std::vector<std::pair<double, double>> table;
  double cpu_s_per_byte = 0;  ///< what exchanging a byte takes from computing on the same rank
  friend bool operator==(const ExchangeCost&, const ExchangeCost&) = default;
};

struct PlanPrice {
  std::string algorithm;     ///< what "auto" became
  std::uint32_t rounds = 0;  ///< makespan with one send and one receive port per rank, a chunk takes one unit
  std::uint64_t wire_bytes_per_rank = 0;  ///< largest payload any rank sends
  double predicted_s = 0;                 ///< the plans played in time
};

/// An algorithm, what its cost law says, and what was measured of it, for the size at hand.
struct PlanRank {
  std::string algorithm;
  double law_s = 0;
  std::optional<double> measured_s{};
};

/// The plan of every rank; an empty one where it takes part in nothing. Throws Misuse (unknown algorithm, collective it
/// does not offer, root out of range, a grid that does not fit, a negative cost).
[[nodiscard]] std::vector<Plan> plan_collective(const PlanRequest& request, const NetworkCost& cost = {});
/// Proves by symbolic execution on sets of ranks that the plans compute the collective and never block; empty when
/// they do, else what is wrong.
[[nodiscard]] std::string verify_plans(const std::vector<Plan>& plans, Collective collective, int root);
/// The same where parts of the ranks carry the request out, each for itself: also that nobody reaches beyond its part.
[[nodiscard]] std::string verify_plans(const std::vector<Plan>& plans, const PlanRequest& request);
/// The same of what plan_collective(request, cost) returns; where all plans are rotations of rank 0's (a ring's), by
/// that one alone, so that thousands of ranks take no longer than a few.
[[nodiscard]] std::string verify_plans(const PlanRequest& request, const NetworkCost& cost = {});
/// Of the part that takes longest.
[[nodiscard]] PlanPrice price_plans(const PlanRequest& request, const NetworkCost& cost = {});
/// Every algorithm that offers the collective and fits (the largest part of a scope), in the order in which "auto"
/// prefers them: those that were measured for so many ranks by their times, the others by their laws.
[[nodiscard]] std::vector<PlanRank> rank_algorithms(const PlanRequest& request, const NetworkCost& cost = {});
/// The plans as text: one row per rank, one column per round.
[[nodiscard]] std::string draw_plans(const PlanRequest& request, const NetworkCost& cost = {});

}  // namespace syncopate
