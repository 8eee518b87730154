// Layouts of sets as they are published and copied: equal classes from files and archives, or a refusal with its cause.
#include <gtest/gtest.h>

#include <map>

#include "input/archives.hpp"
#include "syncopate/error.hpp"
#include "syncopate/files.hpp"
#include "syncopate/pipeline.hpp"
#include "thrown.hpp"

namespace syncopate::input {
namespace {

using namespace test;
using Names = std::vector<std::string>;

struct Layout {
  std::string title;
  Names train, val;
  std::string expected;  ///< the classes, then the labels of training and of evaluation; or words of the refusal
};

const std::vector<Layout> kLayouts{
    {"ImageNet", {"n1/a.JPEG", "n2/b.jpg", "n3/c.png"}, {"n2/d.JPEG"}, "n1 n2 n3: 0 1 2, 1"},
    {"Tiny ImageNet, sorted",
     {"n1/images/0.JPEG", "n1/images/1.JPEG", "n1/n1_boxes.txt", "n2/images/0.JPEG"},
     {"n1/0.JPEG", "n2/images/0.JPEG"},
     "n1 n2: 0 0 1, 0 1"},
    {"a folder around all classes", {"set/n1/0.jpg", "set/n2/deep/1.jpg"}, {"./val/n2/0.jpg"}, "n1 n2: 0 1, 1"},
    {"folders within one class only", {"n1/0.jpg", "n1/more/1.jpg", "n2/0.jpg"}, {"n1/0.jpg"}, "n1 n2: 0 0 1, 0"},
    {"byte order", {"b/0.jpg", "b-c/0.jpg", "B/0.jpg"}, {"b-c/0.jpg"}, "B b b-c: 0 2 1, 2"},
    {"metadata of other programs",
     {"n1/0.jpg", "n1/._0.jpg", "n2/0.jpg", "n2/.ipynb_checkpoints/0.jpg", "__MACOSX/n1/0.jpg", ".cache/0.jpg",
      "n1/Thumbs.db", "notes.txt"},
     {"n1/0.jpg", "__MACOSX/n1/._0.jpg", ".DS_Store"},
     "n1 n2: 0 1, 0"},
    {"one class", {"images/0.jpg", "images/1.jpg"}, {"images/0.jpg"}, "all 2 pictures of "},
    {"a class folder given as the set", {"n1/0.jpg", "n1/more/1.jpg"}, {"n1/0.jpg"}, "in one class, 'n1', such as "},
    {"training pictures without folders", {"0.jpg", "n1/1.jpg"}, {"n1/0.jpg"}, "0.jpg"},
    {"evaluation pictures without folders",
     {"n1/0.jpg", "n2/0.jpg"},
     {"ILSVRC2012_val_00000001.JPEG", "n1/0.jpg"},
     "is in no class folder; sort the pictures of "},
    {"Tiny ImageNet, evaluation as published",
     {"n1/images/0.JPEG", "n2/images/0.JPEG"},
     {"images/val_0.JPEG", "val_annotations.txt"},
     "class 'images', which train/ does not have; sort the pictures of "},
    {"no evaluation pictures", {"n1/0.jpg", "n2/0.jpg"}, {"val_annotations.txt"}, "no pictures to evaluate on"},
};

std::string outcome_of(const std::filesystem::path& folder) {
  try {
    const Dataset set = open_dataset(folder.string());
    std::string text = fmt::format("{}:", fmt::join(set.classes, " "));
    for (const auto& part : {set.training, set.evaluation}) {
      std::map<std::string, std::int64_t> labels;  // by path: archives have their own order
      for (std::size_t record = 0; record < part->records(); ++record) labels[part->name(record)] = part->label(record);
      if (part == set.evaluation) text += ",";
      for (const auto& [name, label] : labels) text += fmt::format(" {}", label);
    }
    return text;
  } catch (const Misuse& error) {
    return error.what();
  }
}

TEST(Layouts, HaveTheSameClassesInFilesAndInArchives) {
  for (const Layout& layout : kLayouts) {
    const Place files("files"), archives("archives");
    for (const auto& [part, names] : {std::pair{"train", layout.train}, std::pair{"val", layout.val}}) {
      std::vector<Entry> entries;
      for (const std::string& name : names)
        entries.push_back({name, "picture"}), put(files.path / part / name, "picture");
      put(archives.path / part / "0.tar", archive_of(entries));
      put(archives.path / part / "._0.tar", "metadata of macOS");
    }
    for (const Place* set : {&files, &archives}) {
      const std::string outcome = outcome_of(set->path);
      const bool is_refusal = layout.expected.find(':') == std::string::npos;
      EXPECT_TRUE(is_refusal ? outcome.find(layout.expected) != std::string::npos : outcome == layout.expected)
          << layout.title << " in " << set->path << ": " << outcome;
    }
  }
}

TEST(Layouts, OfASetNameARefusedPictureAndItsRemedy) {
  const Place set("remedy");
  for (const char* name : {"train/n1/0.jpg", "train/n2/0.jpg", "val/a.jpg", "val/b.jpg"})
    put(set.path / name, "picture");
  EXPECT_EQ(outcome_of(set.path),
            fmt::format("{0}/val/a.jpg is in no class folder; sort the pictures of {0}/val into folders that are named "
                        "after the classes of train/, as val/n1/PICTURE",
                        set.path.string()));
}

TEST(Layouts, WithCompressedArchivesAreRefusedWithTheReason) {
  const Place set("compressed");
  put(set.path / "val/0.tar", archive_of({{"n1/0.jpg", "picture"}}));
  put(set.path / "train/0.tar.gz", "\x1f\x8b and so on");
  syncopate::test::expect_thrown<Corrupt>([&] { return open_dataset(set.path.string()); },
                                          {"train/0.tar.gz at offset 0: compressed by gzip"});
}

TEST(Classes, AreTheFirstFoldersBelowTheDeepestThatHoldsAllFilesInFolders) {
  const auto classes = [](std::vector<std::string_view> paths) { return classes_of(paths); };
  EXPECT_EQ(classes({}), Names());
  EXPECT_EQ(classes({"0"}), Names({""}));
  EXPECT_EQ(classes({"a/0"}), Names({"a"}));
  EXPECT_EQ(classes({"0", "a/0"}), Names({"", "a"}));
  EXPECT_EQ(classes({"a/b/0", "a/b/1"}), Names({"b", "b"}));
  EXPECT_EQ(classes({"a/b/0", "a/1"}), Names({"a", "a"}));
  EXPECT_EQ(classes({"./a//b/0", "/a/c/../d/1"}), Names({"b", "d"}));
  EXPECT_EQ(classes({"a/../../0", "a/0"}), Names({"", "a"}));
  EXPECT_EQ(classes({"x/a/b/0", "x/a/c/0", "x/d/b/0"}), Names({"a", "a", "d"}));
}

TEST(Records, AreNotHiddenAndHaveAnExtension) {
  for (const char* path : {"a.jpg", "a/b.JPG", "./a.jpg", "../a.jpg", "a./b.jpg"})
    EXPECT_TRUE(is_record(path, kPictureExtensions)) << path;
  for (const char* path : {".a.jpg", "._a.jpg", ".a/b.jpg", "a/.b/c.jpg", "__MACOSX/a.jpg", "a.txt", "ajpg", "jpg", ""})
    EXPECT_FALSE(is_record(path, kPictureExtensions)) << path;
  EXPECT_TRUE(is_record("a.txt"));
}

TEST(Files, OfAFolderThatCannotBeReadAreNamedWithTheReason) {
  const Place set("dangling");
  put(set.path / "a/0.jpg", "picture");
  std::filesystem::create_symlink("nowhere", set.path / "a/1.jpg");
  EXPECT_EQ(syncopate::test::thrown<SystemFailure>([&] { return files_in_folder(set.path.string()); }),
            fmt::format("cannot read {}/a/1.jpg: No such file or directory", set.path.string()));
  EXPECT_THROW((void)files_in_folder((set.path / "nowhere").string()), SystemFailure);
  EXPECT_EQ(files_in_folder(set.path.string(), std::array<std::string_view, 1>{"0.jpg"}).size(), 1U);
}

}  // namespace
}  // namespace syncopate::input
