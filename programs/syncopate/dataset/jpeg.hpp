// Encoding a drawn picture as JPEG.
#pragma once

#include <string>

#include "dataset/image.hpp"

namespace syncopate::tools::dataset {

/// A baseline JPEG file of three channels. Throws Misuse where this build has no libjpeg.
[[nodiscard]] std::string jpeg_of(const Picture& picture, int quality);

}  // namespace syncopate::tools::dataset
