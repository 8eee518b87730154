// Photographs: records that are whole JPEG or PNG files.
#pragma once

#include <memory>
#include <string>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// Whether a file of this name belongs to a set: .jpeg, .jpg or .png, in any case.
[[nodiscard]] bool is_photograph(const std::string& name);

/// Recognises JPEG or PNG by the first bytes. Normalises by the moments of ImageNet's pictures.
[[nodiscard]] std::unique_ptr<Decoder> photograph_decoder();

}  // namespace syncopate::input
