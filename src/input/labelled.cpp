// Labels of pictures, and refusals of layouts from which they would be wrong.
#include "input/labelled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/require.hpp"
#include "syncopate/error.hpp"

namespace syncopate::input {
namespace {

class Labelled final : public Source {
 public:
  explicit Labelled(Part part) : part_(std::move(part)) {
    std::vector<std::string_view> paths;
    for (std::size_t record = 0; record < records(); ++record) {
      if (bytes(record) > UINT32_MAX)
        throw Corrupt(fmt::format("{} has {} bytes; allowed: below 4 GiB", name(record), bytes(record)));
      paths.emplace_back(part_.pictures[record].name);
    }
    classes_ = classes_of(paths);
  }

  /// The classes of training.
  [[nodiscard]] std::vector<std::string> own_classes() const {
    for (std::size_t record = 0; record < records(); ++record)
      base::require(!classes_[record].empty(), "{} is in no class folder; allowed: train/CLASS/PICTURE", name(record));
    std::vector<std::string> all = classes_;
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    base::require(all.size() != 1,
                  "all {} pictures of {} are in one class, '{}', such as {}; allowed: at least two classes, where the "
                  "class of a picture is its first folder below the deepest one that contains all of them in folders",
                  records(), part_.folder, all.empty() ? "" : all.front(), records() == 0 ? "" : name(0));
    return all;
  }
  /// Labels by `classes`, which are sorted.
  void number(const std::vector<std::string>& classes) {
    for (std::size_t record = 0; record < records(); ++record) {
      const std::string& own = classes_[record];
      const auto found = std::ranges::lower_bound(classes, own);
      base::require(found != classes.end() && *found == own,
                    "{} is in {}; sort the pictures of {} into folders that are named after the classes of train/, as "
                    "val/{}/PICTURE",
                    name(record),
                    own.empty() ? "no class folder" : fmt::format("class '{}', which train/ does not have", own),
                    part_.folder, classes.empty() ? "CLASS" : classes.front());
      labels_.push_back(found - classes.begin());
    }
    classes_.clear();
  }

  std::size_t records() const noexcept override { return part_.pictures.size(); }
  std::size_t bytes(std::size_t record) const override { return part_.pictures.at(record).bytes; }
  std::int64_t label(std::size_t record) const override { return labels_.at(record); }
  std::string name(std::size_t record) const override { return part_.name(record, part_.pictures.at(record)); }
  std::uint64_t version() const noexcept override { return part_.version; }
  void read(std::size_t record, std::span<std::byte> into) const override {
    part_.read(record, part_.pictures.at(record), into);
  }

 private:
  const Part part_;
  std::vector<std::string> classes_;  ///< of each picture; empty after `number`
  std::vector<std::int64_t> labels_;
};

}  // namespace

Dataset labelled_set(Part training, Part evaluation) {
  const auto train = std::make_shared<Labelled>(std::move(training));
  const auto val = std::make_shared<Labelled>(std::move(evaluation));
  Dataset set;
  set.classes = train->own_classes();
  train->number(set.classes);
  val->number(set.classes);
  set.training = train;
  set.evaluation = val;
  set.decoder = [] { return picture_decoder(); };
  return set;
}

}  // namespace syncopate::input
