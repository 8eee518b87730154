// Compares settings: every rank gets the texts of all ranks, so all ranks find the same difference.
#include "ranks/equal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "syncopate/collective.hpp"
#include "syncopate/error.hpp"

namespace syncopate::train {
namespace {

/// "--lr\0" "0.1\0" ...
std::string text_of(std::span<const Setting> settings) {
  std::string text;
  for (const Setting& setting : settings) text += setting.name + '\0' + setting.value + '\0';
  return text;
}

std::vector<Setting> settings_of(std::string_view text) {
  const auto field = [&] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  std::vector<Setting> settings;
  while (!text.empty()) {
    std::string name = field();
    if (name.empty()) break;  // padding after the last setting
    settings.push_back({std::move(name), field()});
  }
  return settings;
}

/// Every rank's text, padded with zeros to the longest.
std::vector<std::string> texts_of_all(Group& group, const std::string& text) {
  constexpr std::size_t kWord = sizeof(std::int64_t);
  std::array<std::int64_t, 1> words{static_cast<std::int64_t>((text.size() + kWord - 1) / kWord)};
  allreduce(group, std::span<std::int64_t>(words), {.op = ReduceOp::max, .name = "length of the settings"});
  const auto each = static_cast<std::size_t>(words[0]), ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> all(each * ranks);
  std::memcpy(all.data() + each * static_cast<std::size_t>(group.rank()), text.data(), text.size());
  allgather(group, std::span<std::int64_t>(all), {.name = "settings"});
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    texts.emplace_back(reinterpret_cast<const char*>(all.data() + rank * each), each * kWord);
  return texts;
}

}  // namespace

void require_equal(Group& group, std::span<const Setting> settings, std::string_view advice) {
  if (group.size() == 1) return;
  const std::vector<std::string> texts = texts_of_all(group, text_of(settings));
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const std::vector<Setting> first = settings_of(texts[0]), other = settings_of(texts[rank]);
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (first[i] != other[i])
        throw Mismatch(fmt::format("{} is {} on rank 0 and {} on rank {}: {}", first[i].name, first[i].value,
                                   other[i].value, rank, advice),
                       {group.rank(), static_cast<int>(rank), "comparison of settings", {}});
  }
}

}  // namespace syncopate::train
