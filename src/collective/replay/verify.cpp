// Verification: symbolic execution of all ranks' plans on sets of contributors.
#include "collective/replay/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/require.hpp"
#include "collective/plan/shape.hpp"
#include "collective/replay/replay.hpp"

namespace syncopate::collective::replay {

namespace {
constexpr std::uint32_t kBits = 64;
}  // namespace

RankSets::RankSets(std::uint32_t ranks) : ranks_(ranks), width_((ranks + kBits - 1) / kBits) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const Id set = add();
    words_[std::size_t{set} * width_ + rank / kBits] = Word{1} << (rank % kBits);
    sizes_[set] = 1;
  }
  add();
}

RankSets::Id RankSets::add() {
  words_.resize(words_.size() + width_);
  sizes_.push_back(0);
  return static_cast<Id>(sizes_.size() - 1);
}

std::uint32_t RankSets::shared(Id a, Id b) const noexcept {
  for (std::size_t i = 0; i < width_; ++i)
    if (const Word both = words_of(a)[i] & words_of(b)[i]; both != 0)
      return static_cast<std::uint32_t>(i * kBits) + static_cast<std::uint32_t>(std::countr_zero(both));
  return kNobody;
}

RankSets::Id RankSets::united(Id a, Id b) {
  const auto [known, is_first] = united_.try_emplace(std::uint64_t{std::min(a, b)} << 32 | std::max(a, b));
  if (!is_first) return known->second;
  const Id set = known->second = add();
  for (std::size_t i = 0; i < width_; ++i) words_[set * width_ + i] = words_of(a)[i] | words_of(b)[i];
  sizes_[set] = sizes_[a] + sizes_[b];
  return set;
}

RankSets::Id RankSets::rotated(Id set, std::uint32_t by) {
  const Id turned = add();
  for (std::size_t i = 0; i < width_; ++i)
    for (Word rest = words_of(set)[i]; rest != 0; rest &= rest - 1) {
      const auto rank = static_cast<std::uint32_t>(i * kBits) + static_cast<std::uint32_t>(std::countr_zero(rest));
      const std::uint32_t to = (rank + by) % ranks_;
      words_[turned * width_ + to / kBits] |= Word{1} << (to % kBits);
    }
  sizes_[turned] = sizes_[set];
  return turned;
}

namespace {

/// The contents of a chunk: the sum of these ranks' vectors at one place. In a broadcast the root's vector counts as
/// its contribution; in an all-to-all a place is a pair (sender, receiver).
struct Content {
  RankSets::Id contributors = 0;
  std::uint32_t place = 0;
};

/// The result that the plans should compute. Chunks are numbered as in the plans.
struct WantedResult {
  Collective collective;
  std::uint32_t ranks, chunks, root;
  /// The rank that the chunk's part belongs to.
  [[nodiscard]] std::uint32_t owner(std::uint32_t chunk) const {
    return static_cast<std::uint32_t>(std::uint64_t{chunk} * ranks / chunks);
  }
};

bool brings(const WantedResult& asked, std::uint32_t rank, std::uint32_t chunk) {
  switch (asked.collective) {
    case Collective::broadcast:
    case Collective::scatter:
      return rank == asked.root;
    case Collective::allgather:
    case Collective::allgather_v:
    case Collective::gather:
      return asked.owner(chunk) == rank;
    case Collective::alltoall:
    case Collective::alltoall_v:  // each rank's own part is copied before the plan begins
      return chunk < asked.ranks || chunk == asked.ranks + rank;
    default:
      return true;
  }
}

/// Whether this rank must hold this chunk at the end.
bool owed(const WantedResult& asked, std::uint32_t rank, std::uint32_t chunk) {
  switch (asked.collective) {
    case Collective::reduce:
    case Collective::gather:
      return rank == asked.root;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return rank == asked.owner(chunk);
    case Collective::alltoall:
    case Collective::alltoall_v:
      return chunk >= asked.ranks;
    default:
      return true;
  }
}

/// All-to-all of N ranks: chunk c of rank r goes to (r, c), and its chunk N + c comes from (c, r).
std::uint32_t place_of(const WantedResult& asked, std::uint32_t rank, std::uint32_t chunk) {
  if (!plan::swaps(asked.collective)) return chunk;
  return chunk < asked.ranks ? rank * asked.ranks + chunk : (chunk - asked.ranks) * asked.ranks + rank;
}

/// The contents of all ranks' chunks during a replay. If one program stands for all ranks, only rank 0's are kept;
/// those of another rank are their rotation.
class Proof final {
 public:
  Proof(const WantedResult& asked, const Ensemble& ensemble) : asked_(asked), ensemble_(ensemble), sets_(asked.ranks) {
    for (std::uint32_t rank = 0; rank < ensemble.programs.size(); ++rank) {
      held_.emplace_back();
      for (std::uint32_t chunk = 0; chunk < asked.chunks; ++chunk)
        held_.back().push_back({brings(asked, rank, chunk) ? rank : sets_.empty(), place_of(asked, rank, chunk)});
    }
  }

  /// Returns the flaw; empty if the plans are correct.
  std::string run(const Replay& replay) {
    travelling_.resize(replay.transfers.size());
    for (const Event& event : replay.events) {
      const Transfer& transfer = replay.transfers[event.transfer];
      if (!event.lands)
        depart(transfer, event.transfer);
      else
        land(transfer, std::exchange(travelling_[event.transfer], {}));
      if (!flaw_.empty()) return flaw_;
    }
    return missing();
  }

 private:
  void depart(const Transfer& transfer, std::size_t number) {
    const PlanStep& out = ensemble_.programs[transfer.from].plan.steps[transfer.send_step];
    const PlanStep& in = ensemble_.programs[transfer.to].plan.steps[transfer.receive_step];
    if (out.chunk_count != in.chunk_count) {
      flaw_ = fmt::format("rank {} sends chunks {}+{} where rank {} expects {}+{}", transfer.from, out.first_chunk,
                          out.chunk_count, transfer.to, in.first_chunk, in.chunk_count);
      return;
    }
    const auto first = held_[transfer.from].begin() + out.first_chunk;
    travelling_[number].assign(first, first + out.chunk_count);
  }

  void land(const Transfer& transfer, const std::vector<Content>& sent) {
    const PlanStep& in = ensemble_.programs[transfer.to].plan.steps[transfer.receive_step];
    for (std::uint32_t i = 0; i < in.chunk_count && flaw_.empty(); ++i) {
      const Content content = ensemble_.rotates() ? rotated(sent[i], in.peer) : sent[i];
      Content& kept = held_[transfer.to][in.first_chunk + i];
      if (in.act == Act::receive)
        kept = content;
      else
        combine(transfer.to, in.first_chunk + i, content, in.completes);
    }
  }

  /// The contents on rank `by` if those on rank 0 are `content`.
  Content rotated(const Content& content, std::uint32_t by) {
    const std::uint32_t n = asked_.ranks, place = content.place;
    return {sets_.rotated(content.contributors, by), plan::swaps(asked_.collective)
                                                         ? (place / n + by) % n * n + (place % n + by) % n
                                                         : rotated_chunk(place, by, n)};
  }

  void combine(std::uint32_t rank, std::uint32_t chunk, const Content& sent, bool completes) {
    Content& kept = held_[rank][chunk];
    if (sent.place != kept.place) {
      flaw_ = fmt::format("rank {} adds chunk {} to chunk {}", rank, sent.place, kept.place);
      return;
    }
    const std::uint32_t twice = sets_.shared(sent.contributors, kept.contributors);
    if (twice != RankSets::kNobody) {
      flaw_ = fmt::format("rank {} adds rank {}'s contribution to chunk {} twice", rank, twice, chunk);
      return;
    }
    kept.contributors = sets_.united(sent.contributors, kept.contributors);
    const std::uint32_t got = sets_.size_of(kept.contributors);
    if ((got == asked_.ranks) != completes)
      flaw_ = fmt::format("rank {} marks chunk {} as {} when it holds {} of {} contributions", rank, chunk,
                          completes ? "complete" : "incomplete", got, asked_.ranks);
  }

  [[nodiscard]] std::string missing() const {
    const std::uint32_t wanted = plan::reduces(asked_.collective) ? asked_.ranks : 1;
    for (std::uint32_t rank = 0; rank < held_.size(); ++rank)
      for (std::uint32_t chunk = 0; chunk < asked_.chunks; ++chunk) {
        const Content& content = held_[rank][chunk];
        const std::uint32_t got = sets_.size_of(content.contributors);
        if (!owed(asked_, rank, chunk)) continue;
        if (got != wanted || content.place != place_of(asked_, rank, chunk))
          return fmt::format("rank {} ends with {} of {} contributions in chunk {}, from place {}", rank, got, wanted,
                             chunk, content.place);
      }
    return {};
  }

  const WantedResult& asked_;
  const Ensemble& ensemble_;
  RankSets sets_;
  std::vector<std::vector<Content>> held_;        ///< by program, by chunk
  std::vector<std::vector<Content>> travelling_;  ///< by transfer, by chunk of its run: contents when it began
  std::string flaw_;
};

std::string malformed(const Plan& plan, std::size_t rank, std::size_t ranks, std::uint32_t chunks) {
  const bool is_sound = plan.chunks == chunks && std::ranges::all_of(plan.steps, [&](const PlanStep& step) {
                          const bool inside = step.chunk_count > 0 && step.first_chunk + step.chunk_count <= chunks;
                          return inside && step.peer < ranks && step.peer != rank;
                        });
  return is_sound ? "" : fmt::format("rank {} has a step outside the vector or the group", rank);
}

}  // namespace

// On each rank conflicting steps on a chunk are totally ordered, and messages between two ranks match in order. Such a
// network computes the same result in every interleaving (Kahn 1974), so one run proves all of them.
std::string verify(const Ensemble& ensemble, Collective collective, int root) {
  const Replay played = run(ensemble, {.end_of = [](const Message& message) { return message.begin + 1; }});
  if (!played.stuck.empty()) return played.stuck;
  const WantedResult asked{collective, ensemble.ranks, ensemble.programs[0].plan.chunks,
                           static_cast<std::uint32_t>(root)};
  if (plan::swaps(collective) && asked.chunks != 2 * asked.ranks)
    return fmt::format("an {} of {} ranks has {} chunks", name_of(collective), asked.ranks, asked.chunks);
  return Proof(asked, ensemble).run(played);
}

}  // namespace syncopate::collective::replay

namespace syncopate {

std::string verify_plans(const std::vector<Plan>& plans, Collective collective, int root) {
  base::require(!plans.empty(), "there are no plans to verify; pass one per rank");
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    std::string flaw = collective::replay::malformed(plans[rank], rank, plans.size(), plans[0].chunks);
    if (!flaw.empty()) return flaw;
  }
  return collective::replay::verify(collective::replay::whole_ensemble_of(plans), collective, root);
}

}  // namespace syncopate
