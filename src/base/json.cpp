// JSON: checked lookups.
#include "base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::base {

namespace {
/// A short form, because a list or an object may be as long and as deep as its file.
std::string shown(const nlohmann::json& value) { return value.is_structured() ? value.type_name() : value.dump(); }
}  // namespace

void JsonPlace::refuse(const std::string& what) const { throw Misuse(fmt::format("{}: {}", place_, what)); }

std::size_t JsonPlace::size() const {
  if (!value_.is_array()) refuse(fmt::format("a list is expected here, not {}", value_.type_name()));
  return value_.size();
}

JsonPlace JsonPlace::at(const char* key) const {
  if (!value_.is_object())
    refuse(fmt::format("an object with \"{}\" is expected here, not {}", key, value_.type_name()));
  if (!value_.contains(key)) refuse(fmt::format("\"{}\" is missing", key));
  return {value_[key], fmt::format("{}.{}", place_, key)};
}

JsonPlace JsonPlace::at(std::size_t index) const {
  if (index >= size()) refuse(fmt::format("has {} entries; allowed: at least {}", size(), index + 1));
  return {value_[index], fmt::format("{}[{}]", place_, index)};
}

std::vector<std::pair<std::string, JsonPlace>> JsonPlace::items() const {
  if (!value_.is_object()) refuse(fmt::format("an object is expected here, not {}", value_.type_name()));
  std::vector<std::pair<std::string, JsonPlace>> found;
  for (const auto& [key, value] : value_.items()) found.emplace_back(key, JsonPlace(value, place_ + "." + key));
  return found;
}

void JsonPlace::refuse_misspelt(std::initializer_list<std::string_view> keys) const {
  const std::span<const std::string_view> known(keys.begin(), keys.size());
  for (const auto& [key, value] : items())
    if (std::ranges::find(known, key) == known.end() && !nearest_name(key, known).empty())
      refuse(unknown_name("key", key, known));
}

std::string JsonPlace::text() const {
  if (!value_.is_string()) refuse(fmt::format("a text is expected here, not {}", shown(value_)));
  return value_.get<std::string>();
}

std::string JsonPlace::argument() const {
  if (value_.is_string()) return value_.get<std::string>();
  if (!value_.is_number() && !value_.is_boolean())
    refuse(fmt::format("a text, a number, true or false is expected here, not {}", shown(value_)));
  return value_.dump();
}

double JsonPlace::amount() const {
  if (!value_.is_number()) refuse(fmt::format("a number is expected here, not {}", shown(value_)));
  const auto number = value_.get<double>();
  if (!std::isfinite(number) || number < 0) refuse(fmt::format("is {}; allowed: 0 or more", number));
  return number;
}

std::uint64_t JsonPlace::count(std::uint64_t least) const {
  const double number = amount();
  if (number != std::floor(number) || number < static_cast<double>(least) || number > 9e15)
    refuse(fmt::format("is {}; allowed: whole numbers of at least {}", number, least));
  return static_cast<std::uint64_t>(number);
}

nlohmann::json json_of(std::string_view text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, error.byte == 0 ? 0 : error.byte - 1);
    throw Misuse(fmt::format("{}: invalid JSON at line {}", file, 1 + std::ranges::count(before, '\n')));
  } catch (const nlohmann::json::out_of_range&) {
    throw Misuse(fmt::format("{}: a number is too large", file));
  }
}

std::string text_of_file(const std::string& file) {
  const auto fail = [&](const std::string& reason) {
    throw SystemFailure(fmt::format("cannot read {}: {}", file, reason));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> opened(std::fopen(file.c_str(), "rb"), &std::fclose);
  if (opened == nullptr) fail(std::strerror(errno));
  std::string text, piece(std::size_t{64} << 10, '\0');
  while (const std::size_t read = std::fread(piece.data(), 1, piece.size(), opened.get())) {
    text.append(piece, 0, read);
    if (text.size() > kMostFileBytes) fail(fmt::format("it is larger than {} bytes", kMostFileBytes));
  }
  if (std::ferror(opened.get()) != 0) fail(std::strerror(errno));  // a folder can be opened but not read
  return text;
}

}  // namespace syncopate::base
