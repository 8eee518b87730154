// Candidates: streams of processes that claim to be a worker, until they get its slot or are refused.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "server/process/worker_slots.hpp"

namespace syncopate::server {

struct Candidate {
  std::size_t worker = 0;                     ///< as claimed
  std::shared_ptr<streams::Stream> stream{};  ///< null: it has the slot, or has left
  std::optional<std::uint64_t> life{};        ///< of the stream, once it has the slot
  Hello first{};                              ///< while it waits for the slot
  base::Time deadline{};                      ///< while it waits for the slot
  bool is_refused = false;
};

/// Thread-safe. A process does not end the stream of another live process: it waits for the slot until the other has
/// been silent long enough to be lost, and is refused otherwise.
class Candidates final {
 public:
  /// `bound`: longer than a stream takes to end after its other end falls silent.
  Candidates(WorkerSlots& slots, base::Duration bound, std::shared_ptr<const base::Clock> clock)
      : slots_(slots), bound_(bound), clock_(std::move(clock)) {}

  [[nodiscard]] std::shared_ptr<Candidate> arrive(std::size_t worker, std::unique_ptr<streams::Stream> stream);
  [[nodiscard]] std::optional<std::uint64_t> life_of(const Candidate& candidate) const;
  [[nodiscard]] bool is_refused(const Candidate& candidate) const;
  /// Handles a first message that fits the job: the candidate gets the slot, and its stream's number is returned, or it
  /// waits.
  [[nodiscard]] std::optional<std::uint64_t> offer(const std::shared_ptr<Candidate>& candidate, const Hello& first);
  /// Sends it the refusal, and closes its stream.
  void refuse(Candidate& candidate, const Refuse& refusal);
  /// Its stream has ended. Returns the stream's number if it had the slot.
  [[nodiscard]] std::optional<std::uint64_t> leave(Candidate& candidate);

  struct Due {
    std::vector<std::shared_ptr<Candidate>> admitted{}, refused{};  ///< since now; the caller refuses `refused`
    base::Time next = base::kNever;                                 ///< of the next one, if nothing happens before
  };
  [[nodiscard]] Due due();

 private:
  [[nodiscard]] bool admit(Candidate& candidate) SYNCOPATE_REQUIRES(mutex_);

  WorkerSlots& slots_;
  const base::Duration bound_;
  const std::shared_ptr<const base::Clock> clock_;
  mutable base::Mutex mutex_;  ///< also guards the members of all candidates but `worker`
  std::vector<std::shared_ptr<Candidate>> waiting_ SYNCOPATE_GUARDED_BY(mutex_);
};

}  // namespace syncopate::server
