// The job's secret, and the texts that it seals: what was changed, or made without it, is refused.
#include "transport/connect/secret.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "transport/connect/seal.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport::connect {
namespace {

TEST(Secret, IsReadWithoutItsLineEndAndMustBeLongEnough) {
  const test::Folder folder;
  const std::string path = test::secret_in(folder, "0123456789abcdef\n");
  EXPECT_EQ(read_secret(path), "0123456789abcdef");
  std::ofstream(path) << "short\n";
  EXPECT_THROW(std::ignore = read_secret(path), Misuse);
  EXPECT_THROW(std::ignore = read_secret(folder.path + "/none"), Misuse);
  EXPECT_EQ(read_secret(""), "");
}

TEST(Secret, IsRefusedWhereOthersCanReadItOrItIsNoSecret) {
  const test::Folder folder;
  const std::string path = test::secret_in(folder, std::string(4096, 's'));
  EXPECT_EQ(read_secret(path).size(), 4096U);
  std::filesystem::permissions(path, std::filesystem::perms::others_read, std::filesystem::perm_options::add);
  EXPECT_THROW(std::ignore = read_secret(path), Misuse);
  EXPECT_THROW(std::ignore = read_secret(test::secret_in(folder, std::string(4097, 's'))), Misuse);
}

/// From RFC 4231, test case 2.
TEST(Secret, MakesTheCodesOfTheStandard) {
  const std::string text = "what do ya want for nothing?";
  const Digest code = mac_of("Jefe", std::as_bytes(std::span(text)));
  EXPECT_EQ(fmt::format("{:02x}{:02x}{:02x}{:02x}", static_cast<int>(code[0]), static_cast<int>(code[1]),
                        static_cast<int>(code[2]), static_cast<int>(code[31])),
            "5bdcc143");
}

const std::string kSecret = "a secret of sufficient length", kOther = "another secret, long enough";

std::string kind_of_refusal(const std::string& sealed, const Speaker& of, const std::string& secret) {
  try {
    std::ignore = unseal(sealed, of, secret);
  } catch (const Error& error) {
    EXPECT_EQ(error.where().peer, of.rank);
    return std::string(name_of(error.kind()));
  }
  return "";
}

TEST(Seal, GivesBackTheTextToWhoHasTheSecret) {
  for (const std::string& secret : {std::string(), kSecret})
    for (const std::string& text : {std::string(), std::string("some text"), std::string(4000, 'x')})
      EXPECT_EQ(unseal(seal(text, {1, 3}, secret), {1, 3}, secret), text);
}

TEST(Seal, FindsEveryChangedByte) {
  const std::string sealed = seal("some text", {1, 3}, kSecret);
  for (std::size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_EQ(kind_of_refusal(changed, {1, 3}, kSecret), "Unauthorized") << "byte " << at;
    EXPECT_NE(kind_of_refusal(sealed.substr(0, at), {1, 3}, kSecret), "") << "cut at " << at;
  }
}

TEST(Seal, SpeaksForOneRankOfOneJobOnly) {
  const std::string sealed = seal("some text", {1, 3}, kSecret);
  EXPECT_EQ(kind_of_refusal(sealed, {2, 3}, kSecret), "Unauthorized");
  EXPECT_EQ(kind_of_refusal(sealed, {1, 4}, kSecret), "Unauthorized");
  EXPECT_EQ(kind_of_refusal(sealed, {1, 3}, kOther), "Unauthorized");
}

TEST(Seal, IsAskedForWhereThereIsASecretAndOnlyThere) {
  EXPECT_EQ(kind_of_refusal(seal("some text", {1, 3}, ""), {1, 3}, kSecret), "Unauthorized");
  EXPECT_EQ(kind_of_refusal(seal("some text", {1, 3}, kSecret), {1, 3}, ""), "Unauthorized");
}

TEST(Seal, ATextOfAnotherFormIsCorrupt) {
  for (const char* text : {"", "x", "\1 too short for a code"})
    EXPECT_EQ(kind_of_refusal(text, {1, 3}, kSecret), "Corrupt") << text;
}

TEST(Digest, DiffersWhereverTheTextsDo) {
  const Digest digest = digest_of({"ab", "c"});
  EXPECT_EQ(digest, digest_of({"ab", "c"}));
  EXPECT_NE(digest, digest_of({"a", "bc"}));
  EXPECT_NE(digest, digest_of({"c", "ab"}));
}

}  // namespace
}  // namespace syncopate::transport::connect
