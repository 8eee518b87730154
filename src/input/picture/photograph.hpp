// Photographs: records that are whole JPEG or PNG files.
#pragma once

#include <memory>

#include "syncopate/pipeline.hpp"

namespace syncopate::input {

/// Which of the two a record is, its first bytes say. Normalised by the moments of ImageNet's pictures.
[[nodiscard]] std::unique_ptr<Decoder> photograph_decoder();

}  // namespace syncopate::input
