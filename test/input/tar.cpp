// Tar archives: fields of their headers, equality with sets of files, and refusals.
#include "input/tar.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>

#include "input/archives.hpp"
#include "input/pictures.hpp"
#include "syncopate/error.hpp"
#include "syncopate/pipeline.hpp"
#include "thrown.hpp"

namespace syncopate::input {
namespace {

using namespace test;
namespace fs = std::filesystem;

std::vector<StoredFile> members_in(const std::string& bytes) {
  return tar::members_of({"a.tar", bytes.size(), [&](std::uint64_t offset, base::Bytes into) {
                            ASSERT_LE(offset + into.size(), bytes.size());
                            std::memcpy(into.data(), bytes.data() + offset, into.size());
                          }});
}

std::string refusal_of(const std::string& bytes) {
  return syncopate::test::thrown<Corrupt>([&] { return members_in(bytes); });
}

TEST(Tar, FilesLieWhereTheirHeadersSay) {
  const std::string long_name = "cat/" + std::string(300, 'x') + ".jpeg";
  const std::string path = " path=" + long_name + "\n", record = std::to_string(path.size() + 3) + path;
  const std::string bytes = archive_of({{"cat/", "", '5'},
                                        {"cat/1.jpeg", "first"},
                                        {"pax", record, 'x'},
                                        {"short", std::string(700, 'p')},
                                        {"././@LongLink", long_name + '\0', 'L'},
                                        {"short", "gnu"},
                                        {"dog/2.png", ""}});
  const auto members = members_in(bytes);
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[0].name, "cat/1.jpeg");
  EXPECT_EQ(bytes.substr(members[0].offset, members[0].bytes), "first");
  EXPECT_EQ(members[1].name, long_name);
  EXPECT_EQ(members[1].bytes, 700U);
  EXPECT_EQ(members[2].name, long_name);
  EXPECT_EQ(bytes.substr(members[2].offset, members[2].bytes), "gnu");
  EXPECT_EQ(members[3].name, "dog/2.png") << "a long name is of one file";
  EXPECT_EQ(members_in(bytes.substr(0, bytes.size() - 1024)).size(), 4U) << "without the blocks of its end";
  const auto sized = members_in(archive_of(
      {{"pax", "10 size=3\n", 'x'}, {"././@LongLink", long_name + '\0', 'L'}, {"short", "gnu"}, {"dog/2.png", ""}}));
  ASSERT_EQ(sized.size(), 2U);
  EXPECT_EQ(sized[0].name, long_name) << "a size in an extended header is the file's, not that of another header";
  EXPECT_EQ(sized[0].bytes, 3U);
}

TEST(Tar, PrefixesAndBinarySizesAreRead) {
  std::string header = header_of({"1.jpeg", "abc"});
  header.replace(345, 7, "far/cat");
  header.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\3", 12));
  seal(header);
  const auto members = members_in(header + padded("abc"));
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members[0].name, "far/cat/1.jpeg");
  EXPECT_EQ(members[0].bytes, 3U);
}

TEST(Tar, HardLinksHaveTheBytesOfTheirTargets) {
  const std::string bytes = archive_of({{"./.target", "hidden"},
                                        {"one", "111"},
                                        {"two", "", '1', "./one"},
                                        {"three", "", '1', "two"},
                                        {"pax", "22 linkpath=./.target\n", 'x'},
                                        {"four", "", '1', "one"},
                                        {"././@LongLink", std::string("one") + '\0', 'K'},
                                        {"five", "", '1', "nowhere"},
                                        {"symbolic", "", '2', "one"}});
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& file : members_in(bytes)) found.emplace_back(file.name, bytes.substr(file.offset, file.bytes));
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::string>>{{"./.target", "hidden"},
                                                                     {"one", "111"},
                                                                     {"two", "111"},
                                                                     {"three", "111"},
                                                                     {"four", "hidden"},
                                                                     {"five", "111"}}));
  EXPECT_NE(refusal_of(archive_of({{"two", "", '1', "one"}})).find("a hard link to one, which is not"),
            std::string::npos);
}

/// An empty file whose header has these bytes as its size.
std::string with_size(const std::string& field) {
  std::string header = header_of({"x", ""});
  header.replace(124, 12, field);
  seal(header);
  return header;
}

TEST(Tar, WhatIsDamagedIsRefusedWithItsPlaceAndReason) {
  using namespace std::string_literals;
  const std::string good = archive_of({{"cat/1.jpeg", std::string(600, 'a')}, {"cat/2.jpeg", "b"}});
  std::string flipped = good;
  flipped[1536 + 3] ^= 1;
  const auto pax = [](const std::string& record) { return archive_of({{"pax", record, 'x'}}); };
  const std::pair<std::string, std::string> refused[] = {
      {"a.tar at offset 1536: the header's checksum is wrong", flipped},
      {"offset 0: 600 bytes, but only 488 are left", good.substr(0, 1000)},
      {"data follow the archive's end", good + good},
      {"cut short", good.substr(0, 1700)},
      {"beyond 64 bits", with_size(std::string(12, '\xff'))},
      {"not octal", with_size("seventeen\0\0\0"s)},
      {"not a number", pax("11 size=1x\n")},
      {"at most 65536", pax(std::string(70'000, 'x'))},
      {"a sparse file", pax("22 GNU.sparse.major=1\n")},
      {"a sparse file", archive_of({{"x", "", 'S'}})},
  };
  for (const auto& [words, bytes] : refused) syncopate::test::expect_words(refusal_of(bytes), {words});
  for (const auto& [magic, program] : {std::pair{"\x1f\x8b", "gzip"}, {"BZh", "bzip2"}, {"\3757zXZ", "xz"}})
    for (const std::size_t length : {100U, 2000U})  // also shorter than a header
      EXPECT_EQ(refusal_of(magic + std::string(length, 'z')),
                "a.tar at offset 0: compressed by " + std::string(program) +
                    "; allowed: a tar archive that is not compressed, because its files are read at their offsets");
  EXPECT_EQ(members_in(archive_of({{"BZh/1.jpeg", "its name begins like a compressed file"}})).size(), 1U);
  for (const char* record : {"5 path=x\n", "99 path=x\n", "path=x\n", "9 path=xy", "7 path\n", "0 a=b\n"})
    EXPECT_NE(refusal_of(pax(record)).find("extended header"), std::string::npos) << record;
}

TEST(Tar, LimitsAreTakenAndWhatExceedsThemByOneIsRefused) {
  const std::string zeros(512, '\0'), file = header_of({"x", "abc"}) + "abc";
  EXPECT_EQ(members_in(header_of({"x", ""})).size(), 1U) << "a header may be the archive's last bytes";
  EXPECT_EQ(members_in(file).size(), 1U) << "and so may contents";
  EXPECT_EQ(members_in(header_of({"x", std::string(512, 'a')}) + std::string(512, 'a') + file).size(), 2U);
  const std::string most_pax = std::to_string(64 << 10) + " comment=", text((64 << 10) - most_pax.size() - 1, 'c');
  EXPECT_EQ(members_in(archive_of({{"pax", most_pax + text + '\n', 'x'}, {"x", ""}})).size(), 1U);
  EXPECT_EQ(members_in(archive_of({{"L", std::string(64 << 10, 'n'), 'L'}, {"x", ""}}))[0].name.size(), 64U << 10);
  using namespace std::string_literals;
  const std::map<std::string, std::string> refused{
      {"offset 0: the archive is cut short", header_of({"x", ""}).substr(0, 511)},
      {"offset 512: data follow", zeros + header_of({"x", ""})},
      {"3 bytes, but only 2 are left", file.substr(0, 514)},
      {"18446744073709551615 bytes, but only 0 are left", with_size("\x80\0\0\0"s + std::string(8, '\xff'))},
      {"beyond 64 bits", with_size("\x80\0\0\1"s + std::string(8, '\0'))},
      {"header of 65537 bytes", archive_of({{"L", std::string((64 << 10) + 1, 'n'), 'L'}})},
      {"malformed", archive_of({{"pax", "11 path=ab", 'x'}})},
      {"header without a value", archive_of({{"pax", "4 a\n", 'x'}})},
  };
  for (const auto& [words, bytes] : refused) syncopate::test::expect_words(refusal_of(bytes), {words});
  for (const char* record : {"2 ", "3 \n", "10 path=xy", "11_path=xy\n", "12 path=xy\n", "1"})
    EXPECT_NE(refusal_of(archive_of({{"pax", record, 'x'}})).find("extended header"), std::string::npos) << record;
}

std::string picture(int blue) {
  const Bytes bytes = jpeg_of(drawing(24, 16, blue));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TarSet, HasThePicturesAndLabelsOfTheFolder) {
  const Place files("files"), archives("archives");
  std::vector<Entry> cats, dogs;
  for (int i = 0; i < 3; ++i) {
    cats.push_back({fmt::format("./cat/{}.jpeg", i), picture(10 * i)});
    dogs.push_back({fmt::format("./dog/{}.JPG", i), picture(200 + i)});
  }
  for (const auto* of : {&cats, &dogs})
    for (const Entry& entry : *of)
      for (const char* part : {"train", "val"}) put(files.path / part / entry.name, entry.contents);
  dogs.push_back({"./dog/._0.JPG", "notes of another system"});
  dogs.push_back({"./dog/readme.txt", "no picture"});
  dogs.push_back({"./.cache/0.jpeg", "in no class"});
  put(archives.path / "train/0.tar", archive_of(cats));
  put(archives.path / "train/1.tar", archive_of(dogs));
  put(archives.path / "val/all.tar", archive_of({cats[0], dogs[0]}));
  const Dataset one = open_dataset(files.path.string()), other = open_dataset(archives.path.string());
  EXPECT_EQ(one.format, "folder");
  EXPECT_EQ(other.format, "tar");
  EXPECT_EQ(other.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(other.training->records(), 6U);
  ASSERT_EQ(one.training->records(), 6U);
  EXPECT_EQ(other.evaluation->records(), 2U);
  for (std::size_t record = 0; record < 6; ++record) {
    ASSERT_EQ(one.training->bytes(record), other.training->bytes(record));
    Bytes a(one.training->bytes(record)), b(a.size());
    one.training->read(record, a);
    other.training->read(record, b);
    EXPECT_EQ(a, b);
    EXPECT_EQ(one.training->label(record), other.training->label(record));
  }
  EXPECT_EQ(other.training->name(4), fmt::format("./dog/1.JPG in {}/train/1.tar", archives.path.string()));
  const std::uint64_t version = other.training->version();
  put(archives.path / "train/1.tar", archive_of(dogs) + std::string(512, '\0'));
  EXPECT_NE(open_dataset(archives.path.string()).training->version(), version);
}

TEST(TarSet, RefusesWhatHasNoClassOfTraining) {
  const Place set("classes");
  put(set.path / "train/0.tar", archive_of({{"cat/0.jpeg", picture(1)}, {"cow/0.jpeg", picture(1)}}));
  put(set.path / "val/0.tar", archive_of({{"dog/0.jpeg", picture(1)}}));
  EXPECT_THROW(static_cast<void>(open_dataset(set.path.string())), Misuse);
  for (const char* name : {"0.jpeg", "./0.jpeg", "cat/../../0.jpeg"}) {
    put(set.path / "val/0.tar", archive_of({{name, picture(1)}}));
    EXPECT_THROW(static_cast<void>(open_dataset(set.path.string())), Misuse) << name;
  }
  put(set.path / "val/0.tar", archive_of({{"cat/0.jpeg", picture(1)}}).substr(0, 700));
  EXPECT_THROW(static_cast<void>(open_dataset(set.path.string())), Corrupt);
}

/// Files with holes take no space on the disk.
TEST(TarSet, AndFolderHavePicturesBelowFourGigabytes) {
  constexpr std::uint64_t kMost = UINT32_MAX;
  const Place files("large-files"), archives("large-archives");
  put(files.path / "val/cat/0.jpeg", picture(1));
  put(archives.path / "val/0.tar", archive_of({{"cat/0.jpeg", picture(1)}}));
  const fs::path file = files.path / "train/cat/0.jpeg", archive = archives.path / "train/0.tar";
  put(file, "");
  put(files.path / "train/dog/0.jpeg", picture(1));
  put(archives.path / "train/1.tar", archive_of({{"dog/0.jpeg", picture(1)}}));
  const auto opens = [](const Place& set) {
    try {
      return open_dataset(set.path.string()).training->bytes(0) == kMost;
    } catch (const Corrupt&) {
      return false;
    }
  };
  for (const std::uint64_t bytes : {kMost, kMost + 1}) {
    std::string header = header_of({"cat/0.jpeg", ""});
    header.replace(124, 12, fmt::format("{:011o} ", bytes));
    seal(header);
    put(archive, header);
    fs::resize_file(archive, 512 + bytes);
    fs::resize_file(file, bytes);
    for (const Place* set : {&files, &archives}) EXPECT_EQ(opens(*set), bytes == kMost) << set->path << ": " << bytes;
  }
}

TEST(TarSet, DoesNotStandBesideFoldersOfClasses) {
  const Place set("both");
  for (const char* name : {"train/cat/0.jpeg", "train/dog/0.jpeg", "val/cat/0.jpeg"}) put(set.path / name, picture(1));
  static_cast<void>(open_dataset(set.path.string()));
  put(set.path / "train/0.tar", archive_of({{"cat/1.jpeg", picture(1)}}));
  EXPECT_THROW(static_cast<void>(open_dataset(set.path.string())), Misuse);
}

}  // namespace
}  // namespace syncopate::input
