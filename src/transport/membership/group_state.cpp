// GroupState: a rank's view of its group: first failure, own operations, progress of the ranks, departed ranks.
#include "transport/membership/group_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/wire.hpp"

namespace syncopate::transport::membership {

namespace {

/// Chains a signature to the hash of all operations before it (the finaliser of splitmix64).
std::uint64_t chain(std::uint64_t before, std::uint64_t number, std::uint64_t signature) noexcept {
  std::uint64_t x = before * 0x9e3779b97f4a7c15 + signature + (number << 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::string number_of(std::uint64_t number) {
  return is_message(number) ? text_of_number(number) : fmt::format("number {}", number);
}

std::string call_of(const Progress& progress) {
  return progress.text.empty() ? fmt::format("rank {} has not", progress.rank)
                               : fmt::format("rank {} called {}", progress.rank, progress.text);
}

std::string place_of(const Progress& progress) {
  if (progress.number == 0) return fmt::format("rank {} has begun no operation", progress.rank);
  return fmt::format("rank {} is at operation {} ({})", progress.rank, progress.number, progress.text);
}

}  // namespace

Failure mismatch_between(std::uint64_t number, const Progress& mine, const Progress& theirs) {
  const std::string first = call_of(mine.rank < theirs.rank ? mine : theirs);
  const std::string second = call_of(mine.rank < theirs.rank ? theirs : mine);
  std::string message =
      fmt::format("ranks called different operations as {}: {}; {}", number_of(number), first, second);
  if (mine.text == theirs.text) message += " (the difference lies in an operation before this one)";
  return {ErrorKind::mismatch, std::move(message), {mine.rank, theirs.rank, mine.text, {}}};
}

std::optional<Failure> GroupState::failure() const {
  return state_.with([](const State& state) { return state.failure; });
}

bool GroupState::decide(const Failure& failure) {
  return state_.with([&](State& state) {
    if (state.failure) return false;
    state.failure = failure;
    failed_.store(true, std::memory_order_release);
    return true;
  });
}

std::optional<Failure> GroupState::began(const OperationRecord& record) {
  return state_.with([&](State& state) -> std::optional<Failure> {
    if (is_message(record.number)) {
      state.messages.push_back(record);
      if (state.messages.size() > kRememberedMessages) state.messages.pop_front();
      return std::nullopt;
    }
    if (state.entries.empty()) state.entries.resize(kRemembered);
    const Entry* before = entry_of(state, state.last);
    const std::uint64_t so_far = before == nullptr ? 0 : before->rolling;
    Entry& entry = state.entries[record.number % kRemembered];
    entry.number = record.number;
    entry.rolling = chain(so_far, record.number, record.common());
    entry.text = base::cut(record.text, kMaxOperationText);
    state.last = record.number;
    return judge_departed(state);
  });
}

std::optional<Failure> GroupState::left(int rank, std::uint64_t number) {
  return state_.with([&](State& state) {
    Departed gone{number, {}};
    if (const auto neighbour = state.neighbours.find(rank); neighbour != state.neighbours.end()) {
      gone.last = neighbour->second;
      state.neighbours.erase(neighbour);
    }
    state.departed.emplace(rank, std::move(gone));
    return judge_departed(state);
  });
}

bool GroupState::has_left(int rank) const {
  return state_.with([&](const State& state) { return state.departed.contains(rank); });
}

std::map<int, std::uint64_t> GroupState::departed() const {
  return state_.with([](const State& state) {
    std::map<int, std::uint64_t> numbers;
    for (const auto& [rank, gone] : state.departed) numbers.emplace(rank, gone.number);
    return numbers;
  });
}

// A neighbour's last call is also compared after it has left: this rank may only then reach it.
std::optional<Failure> GroupState::judge_departed(const State& state) const {
  for (const auto& [rank, gone] : state.departed) {
    if (auto wrong = judge(state, gone.last)) return wrong;
    if (gone.number < state.last)
      return Failure{ErrorKind::peer_lost,
                     fmt::format("rank {} left the group after operation {}", rank, gone.number),
                     {rank_, rank, progress_in(state).text, {}}};
  }
  return std::nullopt;
}

const GroupState::Entry* GroupState::entry_of(const State& state, std::uint64_t number) {
  if (number == 0 || state.entries.empty()) return nullptr;
  const Entry& entry = state.entries[number % kRemembered];
  return entry.number == number ? &entry : nullptr;
}

Progress GroupState::progress_in(const State& state) const {
  const Entry* entry = entry_of(state, state.last);
  return {rank_, state.last, entry == nullptr ? std::string() : entry->text};
}

Progress GroupState::progress() const {
  return state_.with([&](const State& state) { return progress_in(state); });
}

std::string GroupState::text_of(std::uint64_t number) const {
  return state_.with([&](const State& state) {
    for (const OperationRecord& message : state.messages)
      if (message.number == number) return message.text;
    const Entry* entry = entry_of(state, number);
    return entry == nullptr ? std::string() : entry->text;
  });
}

Heartbeat GroupState::heartbeat_for(int neighbour) const {
  return state_.with([&](const State& state) {
    const Entry* entry = entry_of(state, state.last);
    Heartbeat beat{progress_in(state), entry == nullptr ? 0 : entry->rolling, progress_in(state)};
    for (const auto& [rank, received] : state.neighbours)
      if (rank != neighbour && received.behind.number < beat.behind.number) beat.behind = received.behind;
    return beat;
  });
}

std::optional<Failure> GroupState::receive(int neighbour, const Heartbeat& beat) {
  return state_.with([&](State& state) {
    // Compares with the record before first: this rank may have reached it since then.
    std::optional<Failure> wrong;
    if (const auto before = state.neighbours.find(neighbour); before != state.neighbours.end())
      wrong = judge(state, before->second);
    state.neighbours[neighbour] = beat;
    return wrong ? wrong : judge(state, beat);
  });
}

std::optional<Failure> GroupState::compare() const {
  return state_.with([&](const State& state) {
    std::optional<Failure> wrong;
    for (const auto& [rank, beat] : state.neighbours)
      if (!wrong) wrong = judge(state, beat);
    return wrong;
  });
}

std::optional<Failure> GroupState::judge(const State& state, const Heartbeat& beat) const {
  const Entry* entry = entry_of(state, beat.mine.number);
  if (entry == nullptr || entry->rolling == beat.rolling) return std::nullopt;
  return mismatch_between(beat.mine.number, {rank_, beat.mine.number, entry->text}, beat.mine);
}

std::string GroupState::laggards(std::uint64_t number) const {
  return state_.with([&](const State& state) {
    std::map<int, std::string> places;
    if (is_message(number)) return std::string();
    const auto note = [&](const Progress& progress) {
      if (progress.rank >= 0 && progress.number < number) places.emplace(progress.rank, place_of(progress));
    };
    for (const auto& [rank, beat] : state.neighbours) {
      note(beat.mine);
      note(beat.behind);
    }
    std::string text;
    for (const auto& [rank, place] : places) text += (text.empty() ? "" : "; ") + place;
    return text;
  });
}

}  // namespace syncopate::transport::membership
