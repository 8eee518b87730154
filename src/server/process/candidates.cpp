// Candidates: streams of processes that claim to be a worker, until they get its slot or are refused.
#include "server/process/candidates.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::server {

std::shared_ptr<Candidate> Candidates::arrive(std::size_t worker, std::unique_ptr<streams::Stream> stream) {
  slots_.expect(worker, 1);
  return std::make_shared<Candidate>(Candidate{.worker = worker, .stream = std::move(stream)});
}

std::optional<std::uint64_t> Candidates::life_of(const Candidate& candidate) const {
  const base::Lock lock(mutex_);
  return candidate.life;
}

bool Candidates::is_refused(const Candidate& candidate) const {
  const base::Lock lock(mutex_);
  return candidate.is_refused;
}

std::optional<std::uint64_t> Candidates::offer(const std::shared_ptr<Candidate>& candidate, const Hello& first) {
  const base::Lock lock(mutex_);
  candidate->first = first;
  if (admit(*candidate)) return candidate->life;
  candidate->deadline = clock_->now() + bound_;
  waiting_.push_back(candidate);
  return std::nullopt;
}

bool Candidates::admit(Candidate& candidate) {
  if (!candidate.stream) return false;
  candidate.life = slots_.occupy(candidate.worker, candidate.stream, candidate.first.process);
  if (!candidate.life) return false;
  candidate.stream.reset();
  slots_.expect(candidate.worker, -1);
  return true;
}

void Candidates::refuse(Candidate& candidate, const Refuse& refusal) {
  const base::Lock lock(mutex_);
  candidate.is_refused = true;
  if (!candidate.stream) return;
  send(*candidate.stream, 0, ServerMessage(refusal));
  candidate.stream->close({});
}

std::optional<std::uint64_t> Candidates::leave(Candidate& candidate) {
  const base::Lock lock(mutex_);
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.get() == &candidate; });
  if (!candidate.stream) return candidate.life;
  slots_.retire(std::move(candidate.stream));
  slots_.expect(candidate.worker, -1);
  return std::nullopt;
}

Candidates::Due Candidates::due() {
  const base::Lock lock(mutex_);
  Due due;
  const base::Time now = clock_->now();
  std::erase_if(waiting_, [&](const auto& candidate) SYNCOPATE_REQUIRES(mutex_) {
    const bool is_admitted = admit(*candidate), is_late = !is_admitted && candidate->deadline <= now;
    if (is_admitted) due.admitted.push_back(candidate);
    if (is_late) due.refused.push_back(candidate);
    if (!is_admitted && !is_late) due.next = std::min(due.next, candidate->deadline);
    return is_admitted || is_late;
  });
  return due;
}

}  // namespace syncopate::server
