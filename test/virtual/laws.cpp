// Laws: limits of waiting, right results, and which rank may be blamed for what.
#include "virtual/laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace syncopate::virtual_world {

namespace {

using End = Outcome::End;

/// After the join timeout: rank 0's answer that names the missing ranks, its limit for sending it, and a failure's last
/// messages. Connecting may take one silence more.
constexpr auto kAfterJoining = 4s;

class Judge final {
 public:
  Judge(const Scenario& scenario, const Ranks& ranks, Time begin)
      : scenario_(scenario), ranks_(ranks), victim_(*ranks[static_cast<std::size_t>(scenario.victim)]), begin_(begin) {}

  [[nodiscard]] std::vector<std::string> judge(int number);
  [[nodiscard]] std::string judge_all() const;

 private:
  /// Whether some rank had not finished its first operation when the fault struck, or may still need a descriptor
  /// later.
  [[nodiscard]] bool is_early() const {
    if (!scenario_.strikes_early || !victim_.struck()) return false;
    return scenario_.fault == Fault::no_sockets ||
           std::ranges::any_of(ranks_, [&](const auto& rank) { return rank->outcome().worked > *victim_.struck(); });
  }
  [[nodiscard]] bool is_fatal_here() const {
    return kind_after(scenario_.fault).has_value() && victim_.struck().has_value();
  }
  /// A group cannot form without the victim, nor continue without it while it stays.
  [[nodiscard]] bool must_know() const {
    const bool may_pass = scenario_.fault == Fault::cut || (scenario_.fault == Fault::long_stop && is_early());
    return is_fatal_here() && !may_pass && !victim_.was_leaving();
  }
  /// Time by which the last survivor of a formed group must know: two silences in a row, and messages in flight.
  [[nodiscard]] Time known() const { return *victim_.struck() + 2 * scenario_.silence + 2s; }
  [[nodiscard]] Time bound() const;
  [[nodiscard]] bool may_fail() const;
  [[nodiscard]] bool may_name(const Outcome& who, int named) const;
  [[nodiscard]] bool is_right(const Outcome& outcome) const;

  const Scenario& scenario_;
  const Ranks& ranks_;
  const Rank& victim_;
  const Time begin_;
};

/// While ranks join, a rank that waits for a connection waits until the join timeout.
Time Judge::bound() const {
  if (!is_early()) return known();
  return std::max(known(), begin_ + scenario_.latest_start + scenario_.join_time + kAfterJoining + scenario_.silence);
}

bool Judge::may_fail() const { return is_fatal_here() || (is_early() && scenario_.fault == Fault::no_sockets); }

/// While ranks join the tree is incomplete: a rank that joins after a rank has failed and ended, or that shares only
/// data with it, cannot learn the cause. But a rank whose edge existed has received the failure, and a failed rank
/// never leaves in order.
bool Judge::may_name(const Outcome& who, int named) const {
  if (named < 0 || named >= scenario_.ranks) return false;
  if (named == scenario_.victim || (scenario_.fault == Fault::cut && named == victim_.cut_from())) return true;
  const Rank& rank = *ranks_[static_cast<std::size_t>(named)];
  const Outcome& other = rank.outcome();
  const auto says = [&](const char* what) { return who.failure.message.find(what) != std::string::npos; };
  // A rank that leaves reports its broken connection on its own side of the tree. The other side has its goodbye, and
  // waits in vain for the ranks of that side to connect.
  const bool splits = scenario_.fault == Fault::cut && victim_.cut_from() >= 0 &&
                      (victim_.was_leaving() || ranks_[static_cast<std::size_t>(victim_.cut_from())]->is_leaving());
  if (splits && other.ended < who.ended && says("did not connect after a rank between them had left")) return true;
  if (!is_early() || other.end != End::failed) return false;
  if (rank.met() > who.ended && (who.failure.kind == ErrorKind::timeout || says("cannot be reached"))) return true;
  // A stopped rank that continues finds ranks gone that did not wait for it.
  const bool was_stopped = scenario_.fault == Fault::long_stop && says("ended without a word");
  return other.ended < who.ended &&
         (was_stopped || who.failure.kind == ErrorKind::timeout || says("cannot be reached") || says("lost rank"));
}

/// The ranks of "ranks 1, 5 and 7 did not come".
std::set<int> missing_in(const std::string& message) {
  std::set<int> ranks;
  const std::string names = message.substr(0, message.find(" did not"));
  constexpr const char* kDigits = "0123456789";
  for (auto at = names.find_first_of(kDigits); at < names.size(); at = names.find_first_of(kDigits, at)) {
    ranks.insert(std::stoi(names.substr(at)));
    at = names.find_first_not_of(kDigits, at);
  }
  return ranks;
}

bool Judge::is_right(const Outcome& outcome) const {
  const auto& failure = outcome.failure;
  const auto names = [&](int rank) { return may_name(outcome, rank); };
  if (!may_fail()) return false;
  if (!is_early())
    return failure.kind == kind_after(scenario_.fault) &&
           (scenario_.fault == Fault::other_call || names(failure.where.peer));
  if (failure.kind == ErrorKind::peer_lost) return names(failure.where.peer);
  if (failure.kind == ErrorKind::system_failure)
    return scenario_.fault == Fault::no_sockets &&
           (&outcome == &victim_.outcome() || names(failure.where.peer >= 0 ? failure.where.peer : failure.where.rank));
  const std::set<int> missing = missing_in(failure.message);
  return failure.kind == ErrorKind::timeout && !missing.empty() && std::ranges::all_of(missing, names);
}

std::vector<std::string> Judge::judge(int number) {
  const Rank& rank = *ranks_[static_cast<std::size_t>(number)];
  const Outcome& outcome = rank.outcome();
  std::vector<std::string> broken;
  const auto breaks = [&](const std::string& what) { broken.push_back(fmt::format("rank {} {}", number, what)); };
  if (!rank.is_over()) breaks("waits beyond its bound");
  if (!outcome.wrong.empty()) breaks("has a wrong result: " + outcome.wrong);
  // Failures that the victim reports are not checked.
  if (!broken.empty() || (is_fatal_here() && &rank == &victim_)) return broken;
  if (outcome.end == End::failed && !is_right(outcome))
    breaks(fmt::format("accuses: {}: {}", name_of(outcome.failure.kind), outcome.failure.message));
  if (must_know() && outcome.end == End::in_order && outcome.ended > known())
    breaks(fmt::format("never learned of the {} of rank {}", text_of(scenario_.fault), scenario_.victim));
  if (victim_.struck() && outcome.end == End::failed && outcome.ended > bound())
    breaks(fmt::format("learned of the {} of rank {} only after {:.1f} s", text_of(scenario_.fault), scenario_.victim,
                       base::seconds(outcome.ended - *victim_.struck())));
  return broken;
}

/// A silent rank is noticed when the silence is over. Its earlier messages may still be in flight, and the first rank
/// whose program runs may be some edges away.
std::string Judge::judge_all() const {
  const bool falls_silent = scenario_.fault == Fault::vanish || scenario_.fault == Fault::long_stop;
  if (!falls_silent || !must_know() || is_early()) return {};
  std::optional<Time> first;
  for (const auto& rank : ranks_)
    if (rank.get() != &victim_ && rank->outcome().end == End::failed)
      first = std::min(first.value_or(rank->outcome().ended), rank->outcome().ended);
  const Time end = *victim_.struck() + scenario_.silence + 60ms + 30 * scenario_.weather.slowest;
  if (!first || *first <= end) return {};
  return fmt::format("rank {} was first missed {:.0f} ms after its silence was over", scenario_.victim,
                     1e3 * base::seconds(*first - *victim_.struck() - scenario_.silence));
}

}  // namespace

std::string law_broken_by_all(const Scenario& scenario, const Ranks& ranks, Time begin) {
  return Judge(scenario, ranks, begin).judge_all();
}

std::vector<std::string> broken_laws(const Scenario& scenario, const Ranks& ranks, int number, Time begin) {
  return Judge(scenario, ranks, begin).judge(number);
}

}  // namespace syncopate::virtual_world
