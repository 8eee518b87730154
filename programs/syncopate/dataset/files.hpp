// The files of a drawn data set: images of shapes in the layout of CIFAR-10's binary version.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace syncopate::tools::dataset {

struct DatasetOptions {
  std::string folder;
  int train = 50'000;  ///< images in data_batch_1.bin … data_batch_5.bin together
  int test = 10'000;   ///< images in test_batch.bin
  std::uint64_t seed = 1;
  double difficulty = 0;   ///< 0 (a small network comes near 100 %) to 1
  bool overwrite = false;  ///< write into a folder that holds something
};

/// Writes the files and batches.meta.txt, each whole or not at all. Same options, same bytes, on any machine; train and
/// test share no image, and each run of ten images holds every class once. `progress` gets the images drawn so far.
/// Throws Misuse (counts; a folder that is not empty), SystemFailure.
void write_dataset(const DatasetOptions& options, const std::function<void(int)>& progress);

}  // namespace syncopate::tools::dataset
