// Codec choice: all ranks use rank 0's choice; codecs that are predicted to be slower are reported.
#include "update/codec_choice.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "ranks/equal.hpp"
#include "syncopate/collective.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::train {

ChosenCodecs::ChosenCodecs(Group& group, std::vector<std::string> ways, std::vector<CodecChoice> choices)
    : ways_(std::move(ways)), choices_(std::move(choices)) {
  require_equal(group, {{{"the number of buckets", std::to_string(choices_.size())}}},
                "--codec auto: give every rank the same model and options");
  std::vector<std::int64_t> picks;
  for (const CodecChoice& choice : choices_) picks.push_back(static_cast<std::int64_t>(choice.way));
  broadcast(group, std::span<std::int64_t>(picks), {.name = "chosen codecs"});
  for (std::size_t i = 0; i < picks.size(); ++i) choices_[i].way = static_cast<std::size_t>(picks[i]) % ways_.size();
}

std::vector<std::string> ChosenCodecs::by_gradient() const {
  std::vector<std::string> codecs;
  for (const CodecChoice& choice : choices_) codecs.resize(choice.last + 1, ways_[choice.way]);
  return codecs;
}

std::string ChosenCodecs::unused() const {
  std::vector<std::string> losers;
  for (std::size_t way = 0; way < ways_.size(); ++way) {
    if (std::ranges::any_of(choices_, [&](const CodecChoice& choice) { return choice.way == way; })) continue;
    double with_s = 0, chosen_s = 0;
    for (const CodecChoice& choice : choices_) {
      with_s += choice.predicted_s[way];
      chosen_s += choice.predicted_s[choice.way];
    }
    losers.push_back(fmt::format("{} (all buckets: {} with it, {} as chosen)", ways_[way], format_seconds(with_s),
                                 format_seconds(chosen_s)));
  }
  return fmt::format("{}", fmt::join(losers, "; "));
}

void ChosenCodecs::describe(nlohmann::ordered_json& buckets) const {
  for (auto& bucket : buckets)
    for (const CodecChoice& choice : choices_) {
      if (choice.first != bucket["first"] || choice.last != bucket["last"]) continue;
      bucket["codec"] = ways_[choice.way];
      for (std::size_t way = 0; way < ways_.size(); ++way) bucket["predicted_s"][ways_[way]] = choice.predicted_s[way];
    }
}

}  // namespace syncopate::train
