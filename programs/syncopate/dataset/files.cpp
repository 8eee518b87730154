// The files of a drawn data set in the layout of CIFAR-10's binary version.
#include "dataset/files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "dataset/image.hpp"
#include "dataset/shape.hpp"
#include "dataset/writing.hpp"
#include "syncopate/error.hpp"

namespace syncopate::tools::dataset {

namespace fs = std::filesystem;

void write_dataset(const DatasetOptions& options, const std::function<void(int)>& progress) {
  check(options);
  std::error_code error;
  fs::create_directories(options.folder, error);
  if (error) throw SystemFailure(fmt::format("cannot make folder {}: {}", options.folder, error.message()));
  const fs::path folder = options.folder;
  int drawn = 0;
  const auto write_images = [&](const fs::path& target, Set set, int first, int last) {
    write_whole(target, [&](std::ofstream& file) {
      for (int i = first; i < last; ++i) {
        const Record record = draw_image(label_of(options.seed, set, i),
                                         Random(options.seed, set, static_cast<std::uint64_t>(i)), options.difficulty);
        file.write(reinterpret_cast<const char*>(record.data()), static_cast<std::streamsize>(record.size()));
        if (++drawn % 500 == 0) progress(drawn);
      }
    });
  };
  const auto share = [&](int part) {
    return static_cast<int>(static_cast<std::int64_t>(options.train) * part / kTrainFiles);
  };
  for (int part = 0; part < kTrainFiles; ++part)
    write_images(folder / fmt::format("data_batch_{}.bin", part + 1), training, share(part), share(part + 1));
  write_images(folder / "test_batch.bin", testing, 0, options.test);
  write_whole(folder / "batches.meta.txt", [](std::ofstream& file) {
    for (const std::string_view name : kClasses) file << name << '\n';
  });
}

}  // namespace syncopate::tools::dataset
