// Newcomers: streams of processes that claim to be a worker, until they get its slot or are refused.
#include "server/process/newcomers.hpp"

#include <algorithm>
#include <utility>

namespace syncopate::server {

std::shared_ptr<Newcomer> Newcomers::arrive(std::size_t worker, std::unique_ptr<streams::Stream> stream) {
  slots_.expect(worker, 1);
  return std::make_shared<Newcomer>(Newcomer{.worker = worker, .stream = std::move(stream)});
}

std::optional<std::uint64_t> Newcomers::life_of(const Newcomer& newcomer) const {
  const base::Lock lock(mutex_);
  return newcomer.life;
}

bool Newcomers::is_refused(const Newcomer& newcomer) const {
  const base::Lock lock(mutex_);
  return newcomer.is_refused;
}

std::optional<std::uint64_t> Newcomers::offer(const std::shared_ptr<Newcomer>& newcomer, const Hello& first) {
  const base::Lock lock(mutex_);
  newcomer->first = first;
  if (admit(*newcomer)) return newcomer->life;
  newcomer->deadline = clock_->now() + bound_;
  waiting_.push_back(newcomer);
  return std::nullopt;
}

bool Newcomers::admit(Newcomer& newcomer) {
  if (!newcomer.stream) return false;
  newcomer.life = slots_.take(newcomer.worker, newcomer.stream, newcomer.first.process);
  if (!newcomer.life) return false;
  newcomer.stream.reset();
  slots_.expect(newcomer.worker, -1);
  return true;
}

void Newcomers::refuse(Newcomer& newcomer, const Refuse& refusal) {
  const base::Lock lock(mutex_);
  newcomer.is_refused = true;
  if (!newcomer.stream) return;
  send(*newcomer.stream, 0, ServerMessage(refusal));
  newcomer.stream->close({});
}

std::optional<std::uint64_t> Newcomers::leave(Newcomer& newcomer) {
  const base::Lock lock(mutex_);
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.get() == &newcomer; });
  if (!newcomer.stream) return newcomer.life;
  slots_.retire(std::move(newcomer.stream));
  slots_.expect(newcomer.worker, -1);
  return std::nullopt;
}

Newcomers::Due Newcomers::due() {
  const base::Lock lock(mutex_);
  Due due;
  const base::Time now = clock_->now();
  std::erase_if(waiting_, [&](const auto& newcomer) SYNCOPATE_REQUIRES(mutex_) {
    const bool is_admitted = admit(*newcomer), is_late = !is_admitted && newcomer->deadline <= now;
    if (is_admitted) due.seated.push_back(newcomer);
    if (is_late) due.refused.push_back(newcomer);
    if (!is_admitted && !is_late) due.next = std::min(due.next, newcomer->deadline);
    return is_admitted || is_late;
  });
  return due;
}

}  // namespace syncopate::server
