// Verification: symbolic execution of all ranks' plans on sets of contributors.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/require.hpp"
#include "collective/replay.hpp"

namespace syncopate {

namespace {

/// The ranks whose vectors are summed in a chunk; a broadcast's value counts as its root's contribution.
using Contributors = std::vector<bool>;

struct Proof {
  std::vector<std::vector<Contributors>> held;        ///< by rank, by chunk
  std::vector<std::vector<Contributors>> travelling;  ///< by transfer, by chunk of its run: as they were at its begin
  std::string flaw;
};

std::size_t count_of(const Contributors& set) { return static_cast<std::size_t>(std::ranges::count(set, true)); }

Proof initial(const std::vector<Plan>& plans, Collective collective, int root) {
  const std::size_t ranks = plans.size();
  Proof proof;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<Contributors> chunks(plans[rank].chunks, Contributors(ranks));
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      const bool brings = collective == Collective::broadcast   ? rank == static_cast<std::size_t>(root)
                          : collective == Collective::allgather ? chunk * ranks / chunks.size() == rank
                                                                : true;
      chunks[chunk][rank] = brings;
    }
    proof.held.push_back(std::move(chunks));
  }
  return proof;
}

void combine(Proof& proof, std::size_t rank, std::size_t chunk, const Contributors& sent) {
  Contributors& kept = proof.held[rank][chunk];
  for (std::size_t other = 0; other < sent.size(); ++other) {
    if (sent[other] && kept[other])
      proof.flaw = fmt::format("rank {} adds rank {}'s contribution to chunk {} twice", rank, other, chunk);
    kept[other] = kept[other] || sent[other];
  }
}

void depart(Proof& proof, const PlanStep& out, std::size_t rank) {
  const auto first = proof.held[rank].begin() + out.first_chunk;
  proof.travelling.emplace_back(first, first + out.chunk_count);
}

void land(Proof& proof, const std::vector<Contributors>& sent, const PlanStep& in, std::size_t rank) {
  for (std::size_t i = 0; i < sent.size() && proof.flaw.empty(); ++i) {
    const std::size_t chunk = in.first_chunk + i;
    if (in.act == Act::receive) {
      proof.held[rank][chunk] = sent[i];
      continue;
    }
    combine(proof, rank, chunk, sent[i]);
    const std::size_t got = count_of(proof.held[rank][chunk]), ranks = proof.held.size();
    if (proof.flaw.empty() && (got == ranks) != in.completes)
      proof.flaw = fmt::format("rank {} marks chunk {} as {} when it holds {} of {} contributions", rank, chunk,
                               in.completes ? "complete" : "incomplete", got, ranks);
  }
}

void apply(Proof& proof, const std::vector<Plan>& plans, const collective::Replay& run,
           const collective::Moment& moment) {
  const collective::Transfer& transfer = run.transfers[moment.transfer];
  const PlanStep& out = plans[transfer.from].steps[transfer.send_step];
  const PlanStep& in = plans[transfer.to].steps[transfer.receive_step];
  if (out.first_chunk != in.first_chunk || out.chunk_count != in.chunk_count) {
    proof.flaw = fmt::format("rank {} sends chunks {}+{} where rank {} expects {}+{}", transfer.from, out.first_chunk,
                             out.chunk_count, transfer.to, in.first_chunk, in.chunk_count);
    return;
  }
  if (moment.lands) return land(proof, proof.travelling[moment.transfer], in, transfer.to);
  depart(proof, out, transfer.from);
}

/// Must this rank hold this chunk at the end?
bool owed(Collective collective, std::size_t rank, std::size_t owner, int root) {
  if (collective == Collective::reduce) return rank == static_cast<std::size_t>(root);
  return collective != Collective::reduce_scatter || rank == owner;
}

std::string missing(const Proof& proof, Collective collective, int root) {
  const std::size_t ranks = proof.held.size();
  const bool gathers = collective == Collective::allgather || collective == Collective::broadcast;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t chunk = 0; chunk < proof.held[rank].size(); ++chunk) {
      const std::size_t owner = chunk * ranks / proof.held[rank].size();
      const std::size_t got = count_of(proof.held[rank][chunk]);
      if (owed(collective, rank, owner, root) && got != (gathers ? 1 : ranks))
        return fmt::format("rank {} ends with {} of {} contributions in chunk {}", rank, got, gathers ? 1 : ranks,
                           chunk);
    }
  return {};
}

std::string malformed(const std::vector<Plan>& plans) {
  for (std::size_t rank = 0; rank < plans.size(); ++rank)
    for (const PlanStep& step : plans[rank].steps) {
      const bool inside = step.chunk_count > 0 && step.first_chunk + step.chunk_count <= plans[rank].chunks;
      if (!inside || step.peer >= plans.size() || step.peer == rank || plans[rank].chunks != plans[0].chunks)
        return fmt::format("rank {} has a step outside the vector or the group", rank);
    }
  return {};
}

}  // namespace

// Each chunk's steps on a rank are totally ordered where they conflict, and messages between two ranks are matched in
// order: such a network computes the same in every interleaving (Kahn 1974), so one run proves all of them.
std::string verify_plans(const std::vector<Plan>& plans, Collective collective, int root) {
  base::require(!plans.empty(), "there is no plan to verify; give one per rank");
  if (std::string flaw = malformed(plans); !flaw.empty()) return flaw;
  const auto run = collective::replay(plans, [](const PlanStep&) { return 1.0; });
  if (!run.stuck.empty()) return run.stuck;
  Proof proof = initial(plans, collective, root);
  for (const collective::Moment& moment : run.moments) {
    apply(proof, plans, run, moment);
    if (!proof.flaw.empty()) return proof.flaw;
  }
  return missing(proof, collective, root);
}

}  // namespace syncopate
