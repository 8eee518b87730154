// Reading JSON files and files of one JSON object a line, with errors that name file and line.
#include "report/record/jsonl.hpp"

#include <fmt/format.h>

#include <fstream>

#include "report/record/run.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::report::record {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int kTornLines = 2;

std::ifstream open(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw SystemFailure(fmt::format("cannot read {}", file.string()));
  return stream;
}

bool blank(const std::string& line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

/// nlohmann's message without its "[json.exception.parse_error.101]" tag.
std::string reason(const json::exception& error) {
  const std::string what = error.what();
  const auto tag = what.find("] ");
  return tag == std::string::npos ? what : what.substr(tag + 2);
}

/// Whether at most one more line holds anything: then what was just read is among the last two.
bool near_the_end(std::istream& stream) {
  int further = 0;
  for (std::string line; further < kTornLines && std::getline(stream, line);) further += !blank(line);
  return further < kTornLines;
}

}  // namespace

json read_object(const fs::path& file) {
  auto stream = open(file);
  try {
    json value = json::parse(stream);
    if (!value.is_object()) throw Corrupt(fmt::format("{}: expected one JSON object", file.string()));
    return value;
  } catch (const json::exception& error) {
    throw Corrupt(fmt::format("{}: {}", file.string(), reason(error)));
  }
}

bool read_rows(const fs::path& file, const std::function<void(const json&)>& row) {
  auto stream = open(file);
  std::size_t number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (blank(line)) continue;
    const json value = json::parse(line, nullptr, false);
    if (!value.is_object()) {
      if (near_the_end(stream)) return true;
      throw Corrupt(fmt::format("{}, line {}: not a JSON object: {:.60}", file.string(), number, line));
    }
    try {
      row(value);
    } catch (const json::exception& error) {
      throw Corrupt(fmt::format("{}, line {}: {}", file.string(), number, reason(error)));
    } catch (const Corrupt& error) {
      throw Corrupt(fmt::format("{}, line {}: {}", file.string(), number, error.what()));
    }
  }
  if (stream.bad()) throw SystemFailure(fmt::format("cannot read {} beyond line {}", file.string(), number));
  return false;
}

double number(const json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return kUnknown;
  if (!found->is_number()) throw Corrupt(fmt::format("\"{}\" must be a number, not {}", key, found->type_name()));
  return found->get<double>();
}

std::string text(const json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (!found->is_string()) throw Corrupt(fmt::format("\"{}\" must be a text, not {}", key, found->type_name()));
  return found->get<std::string>();
}

}  // namespace syncopate::tools::report::record
