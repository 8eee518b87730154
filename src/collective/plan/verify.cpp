// Verification: symbolic execution of all ranks' plans on sets of contributors.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/require.hpp"
#include "collective/plan/replay.hpp"
#include "collective/plan/shape.hpp"

namespace syncopate {

namespace {

/// What a chunk holds: the sum of these ranks' vectors at this place of the vector. A broadcast's value counts as its
/// root's contribution; places of an all-to-all are (sender, receiver).
struct Content {
  std::vector<bool> contributors;
  std::size_t place = 0;
};

struct Question {
  Collective collective;
  std::size_t ranks, chunks, root;
  /// The rank whose part a chunk belongs to.
  [[nodiscard]] std::size_t owner(std::size_t chunk) const { return chunk * ranks / chunks; }
};

struct Proof {
  std::vector<std::vector<Content>> held;        ///< by rank, by chunk
  std::vector<std::vector<Content>> travelling;  ///< by transfer, by chunk of its run: as they were at its begin
  std::string flaw;
};

std::size_t count_of(const Content& content) {
  return static_cast<std::size_t>(std::ranges::count(content.contributors, true));
}

bool brings(const Question& asked, std::size_t rank, std::size_t chunk) {
  switch (asked.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return rank == asked.root;
    case Collective::allgather:
    case Collective::allgather_v:
    case Collective::gather:
      return asked.owner(chunk) == rank;
    case Collective::alltoall:  // its own part has been copied before the plan begins
      return chunk < asked.ranks || chunk == asked.ranks + rank;
    default:
      return true;
  }
}

/// In an all-to-all of N ranks, chunk c of rank r is for (r, c) and chunk N + c is to come from (c, r).
std::size_t place_of(const Question& asked, std::size_t rank, std::size_t chunk) {
  if (asked.collective != Collective::alltoall) return chunk;
  return chunk < asked.ranks ? rank * asked.ranks + chunk : (chunk - asked.ranks) * asked.ranks + rank;
}

Proof initial(const Question& asked) {
  Proof proof;
  for (std::size_t rank = 0; rank < asked.ranks; ++rank) {
    std::vector<Content> chunks(asked.chunks, Content{std::vector<bool>(asked.ranks), 0});
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      chunks[chunk].contributors[rank] = brings(asked, rank, chunk);
      chunks[chunk].place = place_of(asked, rank, chunk);
    }
    proof.held.push_back(std::move(chunks));
  }
  return proof;
}

void combine(Proof& proof, std::size_t rank, std::size_t chunk, const Content& sent) {
  Content& kept = proof.held[rank][chunk];
  if (sent.place != kept.place) {
    proof.flaw = fmt::format("rank {} adds chunk {} to chunk {}", rank, sent.place, kept.place);
    return;
  }
  for (std::size_t other = 0; other < sent.contributors.size(); ++other) {
    if (sent.contributors[other] && kept.contributors[other])
      proof.flaw = fmt::format("rank {} adds rank {}'s contribution to chunk {} twice", rank, other, chunk);
    kept.contributors[other] = kept.contributors[other] || sent.contributors[other];
  }
}

void depart(Proof& proof, const PlanStep& out, std::size_t rank) {
  const auto first = proof.held[rank].begin() + out.first_chunk;
  proof.travelling.emplace_back(first, first + out.chunk_count);
}

void land(Proof& proof, const std::vector<Content>& sent, const PlanStep& in, std::size_t rank) {
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

void apply(Proof& proof, const std::vector<Plan>& plans, const collective::plan::Replay& run,
           const collective::plan::Moment& moment) {
  const collective::plan::Transfer& transfer = run.transfers[moment.transfer];
  const PlanStep& out = plans[transfer.from].steps[transfer.send_step];
  const PlanStep& in = plans[transfer.to].steps[transfer.receive_step];
  if (out.chunk_count != in.chunk_count) {
    proof.flaw = fmt::format("rank {} sends chunks {}+{} where rank {} expects {}+{}", transfer.from, out.first_chunk,
                             out.chunk_count, transfer.to, in.first_chunk, in.chunk_count);
    return;
  }
  if (moment.lands) return land(proof, proof.travelling[moment.transfer], in, transfer.to);
  depart(proof, out, transfer.from);
}

/// Must this rank hold this chunk at the end?
bool owed(const Question& asked, std::size_t rank, std::size_t chunk) {
  switch (asked.collective) {
    case Collective::reduce:
    case Collective::gather:
      return rank == asked.root;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return rank == asked.owner(chunk);
    case Collective::alltoall:
      return chunk >= asked.ranks;
    default:
      return true;
  }
}

std::string missing(const Proof& proof, const Question& asked) {
  const std::size_t wanted = collective::plan::reduces(asked.collective) ? asked.ranks : 1;
  for (std::size_t rank = 0; rank < asked.ranks; ++rank)
    for (std::size_t chunk = 0; chunk < asked.chunks; ++chunk) {
      const Content& content = proof.held[rank][chunk];
      if (!owed(asked, rank, chunk)) continue;
      if (count_of(content) != wanted || content.place != place_of(asked, rank, chunk))
        return fmt::format("rank {} ends with {} of {} contributions in chunk {}, from place {}", rank,
                           count_of(content), wanted, chunk, content.place);
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
  const auto run = collective::plan::replay(plans, [](auto, auto, const PlanStep&) { return 1.0; });
  if (!run.stuck.empty()) return run.stuck;
  const Question asked{collective, plans.size(), plans[0].chunks, static_cast<std::size_t>(root)};
  if (collective == Collective::alltoall && asked.chunks != 2 * asked.ranks)
    return fmt::format("an alltoall of {} ranks has {} chunks", asked.ranks, asked.chunks);
  Proof proof = initial(asked);
  for (const collective::plan::Moment& moment : run.moments) {
    apply(proof, plans, run, moment);
    if (!proof.flaw.empty()) return proof.flaw;
  }
  return missing(proof, asked);
}

}  // namespace syncopate
