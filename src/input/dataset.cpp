// Opens a set of pictures by the format that recognises its folder, and reads it without a cache.
#include <fmt/format.h>

#include <filesystem>

#include "base/require.hpp"
#include "input/format.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

class DirectReader final : public Reader {
 public:
  DirectReader(const Source& source, const ReaderRank& reader)
      : source_(source), reader_(reader), order_(source.records(), reader.seed) {}

  std::vector<Record> read(const Step& step) override {
    std::vector<Record> records;
    for (const std::uint32_t sample : order_.share(step.at, step.batch, reader_.rank, reader_.ranks).mine) {
      Record& record = records.emplace_back(Record{sample, std::vector<std::byte>(source_.bytes(sample))});
      source_.read(sample, record.bytes);
    }
    return records;
  }

 private:
  const Source& source_;
  const ReaderRank reader_;
  Order order_;
};

/// A folder that cannot be listed would pass for one without pictures.
void require_readable(const std::string& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind == std::filesystem::file_type::not_found) return;
  if (kind == std::filesystem::file_type::directory)
    static_cast<void>(std::filesystem::directory_iterator(path, error));
  if (error) throw SystemFailure(fmt::format("cannot read {}: {}", path, error.message()));
}

}  // namespace

bool is_dataset(const std::string& path) {
  require_readable(path);
  for (const Format* format : formats())
    if (format->recognises(path)) return true;
  return false;
}

Dataset open_dataset(const std::string& path) {
  require_readable(path);
  std::error_code ignored;
  base::require(std::filesystem::exists(path, ignored), "{}: no such folder", path);
  for (const Format* format : formats()) {
    if (!format->recognises(path)) continue;
    Dataset set = format->open(path);
    set.format = format->name;
    base::require(set.training->records() > 0, "{}: no pictures to train on", path);
    base::require(set.evaluation->records() > 0, "{}: no pictures to evaluate on", path);
    return set;
  }
  throw Misuse(fmt::format(
      "{} holds no pictures; allowed: a folder with train/CLASS/PICTURE.jpeg and val/CLASS/PICTURE.jpeg (or .jpg, "
      ".png), one with such CLASS/PICTURE.jpeg in train/*.tar and val/*.tar, one with CIFAR-10's data_batch_1.bin to "
      "data_batch_5.bin and test_batch.bin, or one with MNIST's train-images-idx3-ubyte, train-labels-idx1-ubyte, "
      "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (or .gz)",
      path));
}

std::unique_ptr<Reader> direct_reader(const Source& source, const ReaderRank& reader) {
  return std::make_unique<DirectReader>(source, reader);
}

}  // namespace syncopate::input
