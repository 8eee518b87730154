// The job's secret: read from a file that only its user can read; the codes and digests that are made with it.
#include "base/crypto/secret.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "syncopate/error.hpp"

namespace syncopate::base::crypto {
namespace {

struct Folder {
  Folder() { path = ::mkdtemp(path.data()); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path = (std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string();
};

std::string secret_in(const Folder& folder, std::string_view secret) {
  std::string path = folder.path + "/secret";
  std::ofstream(path) << secret;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return path;
}

TEST(Secret, IsReadWithoutItsLineEndAndMustBeLongEnough) {
  const Folder folder;
  const std::string path = secret_in(folder, "0123456789abcdef\n");
  EXPECT_EQ(read_secret(path), "0123456789abcdef");
  std::ofstream(path) << "short\n";
  EXPECT_THROW(std::ignore = read_secret(path), Misuse);
  EXPECT_THROW(std::ignore = read_secret(folder.path + "/none"), Misuse);
  EXPECT_EQ(read_secret(""), "");
}

TEST(Secret, IsRefusedWhereOthersCanReadItOrItIsNoSecret) {
  const Folder folder;
  const std::string path = secret_in(folder, std::string(4096, 's'));
  EXPECT_EQ(read_secret(path).size(), 4096U);
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_THROW(std::ignore = read_secret(path), Misuse);
  EXPECT_THROW(std::ignore = read_secret(secret_in(folder, std::string(4097, 's'))), Misuse);
}

/// From RFC 4231, test case 2.
TEST(Secret, MakesTheCodesOfTheStandard) {
  const std::string text = "what do ya want for nothing?";
  const Digest code = mac_of("Jefe", std::as_bytes(std::span(text)));
  EXPECT_EQ(fmt::format("{:02x}{:02x}{:02x}{:02x}", static_cast<int>(code[0]), static_cast<int>(code[1]),
                        static_cast<int>(code[2]), static_cast<int>(code[31])),
            "5bdcc143");
}

TEST(Digest, DiffersWhereverTheTextsDo) {
  const Digest digest = digest_of({"ab", "c"});
  EXPECT_EQ(digest, digest_of({"ab", "c"}));
  EXPECT_NE(digest, digest_of({"a", "bc"}));
  EXPECT_NE(digest, digest_of({"c", "ab"}));
}

}  // namespace
}  // namespace syncopate::base::crypto
