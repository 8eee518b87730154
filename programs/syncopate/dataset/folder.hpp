// Drawn sets of pictures in folders: train/CLASS/PICTURE.jpeg and val/CLASS/PICTURE.jpeg.
#pragma once

#include <functional>

#include "dataset/files.hpp"

namespace syncopate::tools::dataset {

struct FolderOptions {
  int least_side = 96;  ///< pixels each way; a picture's side is drawn from these
  int most_side = 96;
  int quality = 90;  ///< of JPEG, 1 to 100
};

/// Writes each picture whole or not at all. Same options and same libjpeg, same bytes; which picture is which depends
/// on the seed alone. `progress` gets the pictures drawn so far. Throws Misuse (counts; a folder that is not empty; a
/// build without libjpeg-turbo), SystemFailure.
void write_folder(const DatasetOptions& options, const FolderOptions& folder, const std::function<void(int)>& progress);

}  // namespace syncopate::tools::dataset
