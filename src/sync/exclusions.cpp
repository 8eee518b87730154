// Exclusions: the smallest sets of names that do not work together, found by checking every combination of all names.
#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "compress/codec.hpp"
#include "optim/rule.hpp"
#include "schedule/policy.hpp"
#include "server/consistency.hpp"
#include "sync/exchange.hpp"
#include "syncopate/tooling/combinations.hpp"

namespace syncopate {

namespace {

constexpr std::size_t kKinds = 5;  ///< exchange, codec, feedback, policy, optimizer
using Names = std::array<std::vector<std::string>, kKinds>;
using NameIndices = std::array<std::size_t, kKinds>;  ///< an index in the names of each kind
using Kinds = unsigned;                               ///< a set of kinds, as bits

constexpr std::string_view kServed = "parameter_server", kUnder = " under ";

template <class Entries>
std::vector<std::string> names_in(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto* entry : entries) names.emplace_back(entry->name);
  return names;
}

std::string served_under(std::string_view model) { return std::string(kServed) + std::string(kUnder) += model; }

/// The names of a default combination come first: an exclusion's reason is that of its completion with them.
Names all_names() {
  const Combination usual;
  Names names{names_in(sync::exchanges()),
              names_in(compress::codecs()),
              {},
              names_in(schedule::policies()),
              names_in(optim::rules())};
  for (const auto* model : server::consistencies()) names[0].push_back(served_under(model->name));
  for (const FeedbackKind kind : kFeedbackKinds) names[2].emplace_back(name_of(kind));
  names[3].push_back(usual.policy);
  const std::string first[] = {usual.exchange, usual.codec, std::string(name_of(usual.feedback)), usual.policy,
                               usual.optimizer};
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    std::ranges::stable_partition(names[kind], [&](const std::string& name) { return name == first[kind]; });
  return names;
}

Combination combination_of(const Names& names, const NameIndices& choice) {
  Combination chosen{.exchange = names[0][choice[0]],
                     .codec = names[1][choice[1]],
                     .feedback = feedback_named(names[2][choice[2]]),
                     .policy = names[3][choice[3]],
                     .optimizer = names[4][choice[4]]};
  if (const std::size_t under = chosen.exchange.find(kUnder); under != std::string::npos) {
    chosen.consistency = chosen.exchange.substr(under + kUnder.size());
    chosen.exchange.resize(under);
  }
  return chosen;
}

/// The part of the message between its first ": " and the allowed values; empty: the combination works.
std::string reason_against(const Combination& combination) {
  try {
    require_combination(combination);
    return {};
  } catch (const Misuse& misuse) {
    std::string text = misuse.what();
    text = text.substr(0, std::min(text.rfind("; allowed"), text.rfind("; leave it out")));
    const std::size_t colon = text.find(": ");
    return colon == std::string::npos ? text : text.substr(colon + 2);
  }
}

template <class Visit>
void each_choice(const Names& names, const Visit& visit) {
  NameIndices choice{};
  for (std::size_t kind = 0; kind < kKinds;) {
    visit(choice);
    for (kind = 0; kind < kKinds && ++choice[kind] == names[kind].size(); ++kind) choice[kind] = 0;
  }
}

/// The choice with zeros for the other kinds.
NameIndices part_of(NameIndices choice, Kinds kinds) {
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if ((kinds >> kind & 1U) == 0) choice[kind] = 0;
  return choice;
}

using Refused = std::set<std::pair<Kinds, NameIndices>>;

bool has_smaller(const Refused& refused, Kinds kinds, const NameIndices& choice) {
  for (Kinds fewer = (kinds - 1) & kinds; fewer > 0; fewer = (fewer - 1) & kinds)
    if (refused.contains({fewer, part_of(choice, fewer)})) return true;
  return false;
}

/// Whether every completion of a part contains another refused part.
bool is_implied(const Names& names, const Refused& refused, const Refused::value_type& part) {
  bool is_implied = true;
  each_choice(names, [&](const NameIndices& choice) {
    if (!is_implied || part_of(choice, part.first) != part.second) return;
    is_implied = std::ranges::any_of(
        refused, [&](const auto& other) { return other != part && part_of(choice, other.first) == other.second; });
  });
  return is_implied;
}

/// The parts of choices that no completion makes possible, without those that contain a smaller one or follow from
/// others.
Refused smallest_refused(const Names& names) {
  std::set<NameIndices> possible;
  each_choice(names, [&](const NameIndices& choice) {
    if (reason_against(combination_of(names, choice)).empty()) possible.insert(choice);
  });
  Refused refused;
  for (int size = 1; size <= static_cast<int>(kKinds); ++size)
    for (Kinds kinds = 1; kinds < 1U << kKinds; ++kinds) {
      if (std::popcount(kinds) != size) continue;
      std::set<NameIndices> works;
      for (const NameIndices& choice : possible) works.insert(part_of(choice, kinds));
      each_choice(names, [&](const NameIndices& choice) {
        if (choice != part_of(choice, kinds) || works.contains(choice) || has_smaller(refused, kinds, choice)) return;
        refused.emplace(kinds, choice);
      });
    }
  for (auto part = refused.begin(); part != refused.end();)
    part = is_implied(names, refused, *part) ? refused.erase(part) : std::next(part);
  return refused;
}

using Parts = std::array<std::vector<std::string>, kKinds>;
struct Found {
  Parts parts;
  std::string reason;
};

/// The server's name alone stands for all its consistency models.
void shorten(std::vector<std::string>& exchanges) {
  std::vector<std::string> models;
  for (const auto* model : server::consistencies()) models.push_back(served_under(model->name));
  std::ranges::sort(models);
  if (std::ranges::includes(exchanges, models)) {
    std::erase_if(exchanges, [&](const std::string& name) { return std::ranges::binary_search(models, name); });
    exchanges.emplace_back(kServed);
  }
}

/// Joins exclusions that differ in the names of one kind.
void join(std::vector<Found>& all, std::size_t kind) {
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size();) {
      Parts other = all[j].parts;
      other[kind] = all[i].parts[kind];
      if (all[i].reason == all[j].reason && other == all[i].parts && !other[kind].empty()) {
        std::ranges::copy(all[j].parts[kind], std::back_inserter(all[i].parts[kind]));
        std::ranges::sort(all[i].parts[kind]);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(j));
      } else {
        ++j;
      }
    }
}

}  // namespace

std::vector<Exclusion> exclusions() {
  const Names names = all_names();
  std::vector<Found> all;
  for (const auto& [kinds, choice] : smallest_refused(names)) {
    Found found{.parts = {}, .reason = reason_against(combination_of(names, choice))};
    for (std::size_t kind = 0; kind < kKinds; ++kind)
      if ((kinds >> kind & 1U) != 0) found.parts[kind] = {names[kind][choice[kind]]};
    all.push_back(std::move(found));
  }
  for (std::size_t kind = kKinds; kind-- > 0;) join(all, kind);
  std::vector<Exclusion> exclusions;
  for (auto& [parts, reason] : all) {
    auto& [exchanges, codecs, feedbacks, policies, optimizers] = parts;
    shorten(exchanges);
    exclusions.push_back({exchanges, codecs, feedbacks, policies, optimizers, reason});
  }
  std::ranges::sort(exclusions, {}, &Exclusion::exchanges);
  return exclusions;
}

}  // namespace syncopate
