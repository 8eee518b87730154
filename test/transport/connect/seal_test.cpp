// Rendezvous texts that the job's secret seals: a text that was changed, or made without the secret, is refused.
#include <gtest/gtest.h>

#include "syncopate/error.hpp"
#include "transport/connect/handshake.hpp"

namespace syncopate::transport::connect {
namespace {

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

}  // namespace
}  // namespace syncopate::transport::connect
