// Codec state: one sealed file per rank; its header has the names and lengths.
#include "record/codec_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "record/json_number.hpp"
#include "require.hpp"
#include "syncopate/tooling/sealed_file.hpp"

namespace syncopate::train {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kStateMagic = "SYNCCST1";

std::string file_of(const StateOf& place) { return fmt::format("{}.rank{}", place.file, place.rank); }

std::string header_of(const StateOf& place, const SavedCodecState& state) {
  Json gradients = Json::array();
  for (const auto& [name, bytes] : state.gradients) gradients.push_back({name, bytes.size()});
  return Json{{"codec", state.codec}, {"steps", state.steps}, {"step", place.step},    {"parameters", place.parameters},
              {"rank", place.rank},   {"ranks", place.ranks}, {"gradients", gradients}}
      .dump();
}

void require_same(const Json& header, const char* what, const Json& here) {
  if (header.at(what) != here)
    throw Corrupt(fmt::format("it was saved with {} {}, this run has {}", what, header.at(what).dump(), here.dump()));
}

SavedCodecState state_of(const Json& header, std::span<const std::uint8_t> payload) {
  SavedCodecState state{.codec = header.at("codec").get<std::string>()};
  read(header, "steps", state.steps);
  read(header, "rank", state.rank);
  read(header, "ranks", state.ranks);
  for (const Json& gradient : header.at("gradients")) {
    const auto bytes = whole_number<std::uint64_t>(gradient.at(1), "number of bytes");
    require_intact(bytes <= payload.size(), "it ends within '{}'", gradient.at(0).get<std::string>());
    const auto values = std::as_bytes(payload.first(bytes));
    state.gradients.emplace_back(gradient.at(0).get<std::string>(), std::vector(values.begin(), values.end()));
    payload = payload.subspan(bytes);
  }
  require_intact(payload.empty(), "{} bytes follow its last gradient", payload.size());
  return state;
}

SavedCodecState load(const StateOf& place, const SavedCodecState& fresh, Lengths lengths) {
  const Sealed sealed = read_sealed(file_of(place), kStateMagic, "codec's state");
  const Json header = Json::parse(sealed.header);
  require_same(header, "codec", fresh.codec);
  require_same(header, "ranks", place.ranks);
  require_same(header, "rank", place.rank);
  require_same(header, "step", place.step);
  require_same(header, "parameters", place.parameters);
  SavedCodecState state = state_of(header, sealed.payload);
  if (const std::string difference = difference_of(state, fresh, lengths); !difference.empty())
    throw Corrupt(difference);
  return state;
}

}  // namespace

bool is_empty(const SavedCodecState& state) {
  return std::ranges::all_of(state.gradients, [](const auto& gradient) { return gradient.second.empty(); });
}

void save_codec_state(const StateOf& place, const SavedCodecState& state) {
  std::vector<std::span<const std::byte>> payload;
  for (const auto& [name, bytes] : state.gradients) payload.emplace_back(bytes);
  write_sealed(file_of(place), kStateMagic, header_of(place, state), payload);
}

/// One codec keeps other parts of gradients under another exchange.
std::string difference_of(const SavedCodecState& earlier, const SavedCodecState& fresh, Lengths lengths) {
  if (earlier.codec != fresh.codec) return fmt::format("codec {} there, codec {} here", earlier.codec, fresh.codec);
  const auto same = [&](const auto& a, const auto& b) {
    return a.first == b.first && (lengths == Lengths::any || a.second.size() == b.second.size());
  };
  if (std::ranges::equal(earlier.gradients, fresh.gradients, same)) return {};
  return fmt::format("it holds other gradients, or other parts of them, than codec {} keeps under this exchange",
                     fresh.codec);
}

FoundState find_codec_state(const StateOf& place, const SavedCodecState& fresh, Lengths lengths) {
  try {
    return {load(place, fresh, lengths), {}};
  } catch (const std::exception& error) {
    return {std::nullopt, fmt::format("{}: {}", file_of(place), error.what())};
  }
}

}  // namespace syncopate::train
