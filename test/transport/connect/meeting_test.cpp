// The rendezvous: no text can be changed unnoticed if there is a secret, and all ranks must have fitting settings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "thrown.hpp"
#include "transport/ranks.hpp"

namespace syncopate::transport {
namespace {

using namespace std::chrono_literals;
using connect::rendezvous::Member;

const std::string kSecret = "the secret of this very job";

/// A rendezvous that delivers changed texts to one rank.
class Tampered final : public connect::rendezvous::Rendezvous {
 public:
  using Change = std::function<void(std::vector<std::string>& texts)>;
  Tampered(std::shared_ptr<connect::rendezvous::Board> board, Change change)
      : inner_(connect::rendezvous::in_memory(std::move(board))), change_(std::move(change)) {}
  std::vector<std::string> exchange(const Member& me, std::string mine, base::Time deadline) override {
    auto texts = inner_->exchange(me, std::move(mine), deadline);
    change_(texts);
    return texts;
  }

 private:
  std::unique_ptr<connect::rendezvous::Rendezvous> inner_;
  Change change_;
};

void nothing(std::vector<std::string>& /*texts*/) {}

/// How each of two ranks failed to join, as "kind: message"; "no error" if it joined.
std::vector<std::string> outcomes(const std::function<GroupOptions(int)>& options_of, const Tampered::Change& change) {
  const auto board = connect::rendezvous::make_board();
  std::vector<std::string> failed(2);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      GroupOptions options = options_of(rank);
      options.rank = rank;
      options.size = 2;
      failed[static_cast<std::size_t>(rank)] = syncopate::test::kind_thrown([&] {
        Tampered meeting(board, rank == 1 ? change : nothing);
        Endpoint me = join(options, meeting);
        test::barrier(me, 1);
      });
    });
  ranks.clear();
  return failed;
}

class Meeting : public testing::Test {
 protected:
  [[nodiscard]] GroupOptions with_secret(TlsChoice tls = TlsChoice::off) const {
    GroupOptions options = test::quiet_options();
    options.join_timeout = 1s;
    options.secret_file = secret_;
    options.tls = tls;
    return options;
  }
  [[nodiscard]] std::vector<std::string> with_change(const Tampered::Change& change) const {
    return outcomes([&](int) { return with_secret(); }, change);
  }

 private:
  test::Folder folder_;
  std::string secret_ = test::secret_in(folder_, kSecret);
};

TEST_F(Meeting, RanksWithTheSecretJoin) {
  for (const TlsChoice tls : kTlsChoices)
    EXPECT_EQ(outcomes([&](int) { return with_secret(tls); }, nothing), std::vector<std::string>(2, "no error"))
        << name_of(tls);
}

TEST_F(Meeting, AChangedTextIsRefused) {
  const auto failed = with_change([](auto& texts) { texts[0][30] = static_cast<char>(texts[0][30] ^ 1); });
  EXPECT_TRUE(failed[1].starts_with("Unauthorized: the text of rank 0 at the rendezvous has a wrong code"))
      << failed[1];
}

TEST_F(Meeting, ATextWithoutACodeIsRefused) {
  const auto failed = with_change([](auto& texts) { texts[0] = connect::seal("anything", {0, 2}, ""); });
  EXPECT_TRUE(failed[1].starts_with("Unauthorized: the text of rank 0 at the rendezvous is not sealed")) << failed[1];
}

TEST_F(Meeting, OnesOwnTextThatWasReplacedIsRefused) {
  const auto failed = with_change([](auto& texts) { texts[1] = connect::seal("an earlier one", {1, 2}, kSecret); });
  EXPECT_TRUE(failed[1].starts_with("Unauthorized: another process has replaced this rank's text")) << failed[1];
}

// A text that was sealed with the same secret for an earlier job: its code is right, but rank 0 has not sent it now.
TEST_F(Meeting, ATextOfAnEarlierJobKeepsRanksFromEachOther) {
  const auto failed = with_change([](auto& texts) {
    connect::PeerInfo earlier = connect::decode_peer_info(connect::unseal(texts[0], {0, 2}, kSecret), 0);
    earlier.silence_ms += 1;
    texts[0] = connect::seal(encode(earlier), {0, 2}, kSecret);
  });
  EXPECT_TRUE(failed[1].starts_with("PeerLost: rank 0 cannot be reached")) << failed[1];
  EXPECT_TRUE(test::contains(failed[1], "received other texts at the rendezvous")) << failed[1];
}

TEST_F(Meeting, TlsOnOneSideIsMisuseOnBoth) {
  const std::pair<TlsChoice, TlsChoice> settings[] = {
      {TlsChoice::on, TlsChoice::off}, {TlsChoice::off, TlsChoice::on}, {TlsChoice::automatic, TlsChoice::on}};
  for (const auto& [first, second] : settings) {
    const auto failed = outcomes([&](int rank) { return with_secret(rank == 0 ? first : second); }, nothing);
    for (const std::string& failure : failed)
      EXPECT_EQ(failure, fmt::format("Misuse: rank 1 has SYNCOPATE_TLS={}, rank 0 has SYNCOPATE_TLS={}; set it to on "
                                     "or off, the same on every rank",
                                     name_of(second), name_of(first)));
  }
}

TEST_F(Meeting, TlsWithoutASecretIsMisuse) {
  GroupOptions options = test::quiet_options();
  options.tls = TlsChoice::on;
  for (const std::string& failure : outcomes([&](int) { return options; }, nothing))
    EXPECT_TRUE(failure.starts_with("Misuse: SYNCOPATE_TLS=on needs the job's secret")) << failure;
}

/// The first interface of this host that is not loopback, with its address.
std::optional<std::pair<std::string, socket::Address>> outside_address() {
  for (const auto& one : socket::interface_addresses())
    if (!one.second.loopback()) return one;
  return std::nullopt;
}

/// Rank 0's warning when two ranks join at this host's non-loopback address; "skip" if there is none.
std::string warning_with(const GroupOptions& given) {
  const auto outside = outside_address();
  if (!outside) return "skip";
  const test::Folder folder;
  std::string warnings;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      GroupOptions options = given;
      options.rank = rank;
      options.size = 2;
      options.interface = outside->first;
      options.rendezvous = "file://" + folder.path;
      if (rank == 0) options.log = {LogLevel::warning, [&](LogLevel, std::string_view line) { warnings += line; }};
      Endpoint me = join_processes(options, base::Environment());
      test::barrier(me, 1);
    });
  ranks.clear();
  return warnings;
}

connect::PeerInfo at(const std::string& address, TlsChoice tls) {
  return {.version = {}, .address = address, .host = {}, .memory_socket = {}, .owner = {}, .transport = {}, .tls = tls};
}

TEST_F(Meeting, BeyondLoopbackWithoutTlsIsWarnedOfUnlessItWasChosen) {
  GroupOptions options = with_secret(TlsChoice::automatic);
  options.join_timeout = 30s;
  const std::string open = warning_with(options);
  if (open == "skip") GTEST_SKIP() << "this host has loopback only";
  const std::string address = outside_address()->second.text();
  EXPECT_NE(connect::agreed_tls({at(address, TlsChoice::automatic), at(address, TlsChoice::automatic)}),
            test::contains(open, "not encrypted"))
      << open;
  for (const TlsChoice chosen : {TlsChoice::on, TlsChoice::off}) {
    options.tls = chosen;
    EXPECT_EQ(warning_with(options), "") << name_of(chosen);
  }
}

TEST(AgreedTls, IsAutomaticWhereAnyAddressIsPublic) {
  EXPECT_FALSE(connect::agreed_tls({at("127.0.0.1:1", TlsChoice::automatic), at("127.0.0.1:2", TlsChoice::automatic)}));
  EXPECT_FALSE(connect::agreed_tls({at("10.0.0.1:1", TlsChoice::automatic), at("10.0.0.2:1", TlsChoice::automatic)}));
  EXPECT_TRUE(connect::agreed_tls({at("10.0.0.1:1", TlsChoice::automatic), at("8.8.8.8:1", TlsChoice::automatic)}));
  EXPECT_TRUE(connect::agreed_tls({at("10.0.0.1:1", TlsChoice::on), at("8.8.8.8:1", TlsChoice::automatic)}))
      << "both come to on";
  EXPECT_THROW(
      std::ignore = connect::agreed_tls({at("10.0.0.1:1", TlsChoice::on), at("10.0.0.2:1", TlsChoice::automatic)}),
      Misuse);
  EXPECT_THROW(
      std::ignore = connect::agreed_tls({at("10.0.0.1:1", TlsChoice::automatic), at("8.8.8.8:1", TlsChoice::off)}),
      Misuse);
}

}  // namespace
}  // namespace syncopate::transport
