// Codecs by name and parameter.
#include "compress/codec.hpp"

#include "base/shelf.hpp"

namespace syncopate::compress {

std::string Settings::text() const {
  return parameter.empty() ? std::string(codec->name) : fmt::format("{}:{}", codec->name, parameter);
}

Settings settings_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const Codec& codec = base::entry_named("codec", text.substr(0, colon), codecs());
  if (colon == std::string_view::npos) return {&codec, std::string(codec.parameter)};
  const std::string_view parameter = text.substr(colon + 1);
  base::require(!codec.parameter.empty(), "codec '{}': {} takes no parameter; allowed: {}", text, codec.name,
                codec.name);
  base::require(!parameter.empty(), "codec '{}' has an empty parameter; allowed: {}, or {}:{} and the like", text,
                codec.name, codec.name, codec.parameter);
  return {&codec, std::string(parameter)};
}

void require_taken(const Settings& settings, std::string_view gradient, DType dtype) {
  if (settings.codec->takes(dtype)) return;
  std::vector<std::string_view> types;
  for (const DType type : kDTypes)
    if (settings.codec->takes(type)) types.push_back(name_of(type));
  throw Misuse(fmt::format("codec {} does not take gradient '{}' of type {}; allowed: {}", settings.codec->name,
                           gradient, name_of(dtype), fmt::join(types, ", ")),
               {.tensor = std::string(gradient)});
}

}  // namespace syncopate::compress
