// Checkpoints: a file that is not as it was written is refused by name before the first step, whatever is wrong in it.
#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "process/run_program.hpp"

namespace syncopate::test {
namespace {

constexpr std::size_t kFront = 16, kHash = 8;  // magic and length of the header; behind all else its hash

std::string with_hash(std::string bytes) {
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  return bytes.append(reinterpret_cast<const char*>(&hash), sizeof hash);
}

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(syncopate({"data", "draw", "--out", images, "--train", "80", "--test", "10", "--seed", "1"}).code, 0);
    ASSERT_EQ(train("--steps 2 --checkpoint " + file).code, 0);
    whole = file_text(file);
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, whole.data() + 8, sizeof header_bytes);
    header = whole.substr(kFront, header_bytes);
    numbers = whole.substr(kFront + header_bytes, whole.size() - kFront - header_bytes - kHash);
  }
  [[nodiscard]] Ended train(const std::string& more) const {
    const std::string words = " train --json --model linear --batch 4 --evaluate-every 0 --data " + images + " " + more;
    return syncopate(run_script(1, "exec " SYNCOPATE_PROGRAM + words));
  }
  [[nodiscard]] Ended resumed_from(const std::string& bytes) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    return train("--steps 4 --resume " + file);
  }
  void expect_corrupt(const std::string& bytes, const std::string& what, const std::string& says = "") const {
    const Ended ended = resumed_from(bytes);
    EXPECT_EQ(ended.code, 1) << what << ended.error;
    EXPECT_NE(ended.output.find("\"kind\":\"Corrupt\""), std::string::npos) << what << ended.output;
    EXPECT_NE(ended.error.find(says), std::string::npos) << what << ended.error;
    EXPECT_EQ(ended.output.find("\"event\":\"step\""), std::string::npos) << what;
  }
  /// The checkpoint with other values in its header and a hash that is right.
  [[nodiscard]] std::string with_header(const std::string& other_header, std::uint64_t claimed_bytes) const {
    std::string bytes = whole.substr(0, 8);
    bytes.append(reinterpret_cast<const char*>(&claimed_bytes), sizeof claimed_bytes);
    return with_hash(bytes + other_header + numbers);
  }
  [[nodiscard]] std::string with(const std::string& key, std::uint64_t value) const {
    auto changed = nlohmann::ordered_json::parse(header);
    changed[key] = value;
    return with_header(changed.dump(), changed.dump().size());
  }

  TemporaryFolder folder;
  const std::string images = folder / "images", file = folder / "checkpoint";
  std::string whole, header, numbers;
};

TEST_F(Checkpoint, GoesOnWhereItStopped) {
  const Ended ended = resumed_from(with_header(header, header.size()));
  EXPECT_EQ(ended.code, 0) << ended.error;
  EXPECT_NE(ended.output.find("\"step\":3"), std::string::npos) << ended.output;
}

TEST_F(Checkpoint, WithOneByteChangedIsRefused) {
  const std::size_t digit = kFront + header.find("\"seed\":") + 7, payload = kFront + header.size();
  for (const std::size_t at : {std::size_t{0}, std::size_t{8}, digit, payload, payload + numbers.size() / 2,
                               whole.size() - kHash - 1, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    expect_corrupt(damaged, "byte " + std::to_string(at), at == 0 ? "is not a checkpoint" : "do not match their hash");
  }
}

TEST_F(Checkpoint, ThatIsCutShortOrLongerIsRefused) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{20}, whole.size() / 2, whole.size() - 1})
    expect_corrupt(whole.substr(0, size), std::to_string(size) + " bytes");
  expect_corrupt(whole + "x", "one byte more");
}

// The hash is correct and the header is wrong.
TEST_F(Checkpoint, WhoseHeaderLiesIsRefused) {
  for (const std::uint64_t claimed : {std::uint64_t{1} << 62, ~std::uint64_t{0}, std::uint64_t{whole.size()}})
    expect_corrupt(with_header(header, claimed), std::to_string(claimed), "its header is longer than the file");
  expect_corrupt(with_header("no JSON", 7), "no JSON", "is damaged");
  expect_corrupt(with_header("{}", 2), "an empty header", "is damaged");
  const std::uint64_t held = numbers.size() / 4;
  for (const std::uint64_t parameters : {std::uint64_t{1}, held, held / 2 + 1, std::uint64_t{1} << 63})
    expect_corrupt(with("parameters", parameters), std::to_string(parameters), "it holds");
  expect_corrupt(with("buffers", 1), "a buffer", "it holds");
  for (const char* seed : {"-1", "1e300", "0.5", "null"}) {
    std::string lies = header;
    lies.replace(header.find("\"seed\":") + 7, 1, seed);
    expect_corrupt(with_header(lies, lies.size()), seed, "its seed is not a whole number");
  }
  auto kept = nlohmann::ordered_json::parse(header);
  kept["kept"] = {"velocity", "square"};
  expect_corrupt(with_header(kept.dump(), kept.dump().size()), "another state", "it holds");
}

TEST_F(Checkpoint, OfOtherDataIsMisuse) {
  expect_misuse(resumed_from(with("training_samples", 81)), {"was trained on 81 samples, --data holds 80"});
}

}  // namespace
}  // namespace syncopate::test
