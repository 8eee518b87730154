// Format: an entry of the shelf format/, which describes how a set of pictures is stored in a folder.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

struct Format {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  bool (*recognises)(const std::string& path);
  Dataset (*open)(const std::string& path);
};

/// Every format, by name (generated from the folder format/).
[[nodiscard]] std::span<const Format* const> formats();

}  // namespace syncopate::input
