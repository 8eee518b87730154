// The environment of the process, and its processors.
#include "base/env.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <charconv>

#include "syncopate/tooling/environment.hpp"

namespace syncopate::base {

namespace {

/// Only variables that the documentation lists are read.
[[maybe_unused]] bool is_documented(std::string_view name) {
  return !name.starts_with("SYNCOPATE_") ||
         std::ranges::find(environment_variables(), name, &EnvironmentVariable::name) != environment_variables().end();
}

}  // namespace

Environment::Environment(std::map<std::string, std::string, std::less<>> values) : values_(std::move(values)) {
  for (const auto& [name, value] : values_) require_allowed(name, value);
}

Environment Environment::of_process() {
  std::map<std::string, std::string, std::less<>> values;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) values.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return Environment(std::move(values));
}

std::optional<std::string> Environment::text(std::string_view name) const {
  assert(is_documented(name));
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<long> Environment::integer(std::string_view name, long low, long high) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  require_allowed(name, *value, AllowedValues::whole(static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high)),
                  "");
  long number = 0;
  std::from_chars(value->data(), value->data() + value->size(), number);
  return number;
}

int processors() noexcept {
  cpu_set_t allowed;
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace syncopate::base
