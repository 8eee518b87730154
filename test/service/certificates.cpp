// Certificates: an end whose certificate is by the job's authority and names its address is reached; no other one is.
#include "server/rpc/certificates.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "service/ends.hpp"

namespace syncopate::server::rpc {
namespace {

using namespace test;

class Certified : public testing::Test {
 protected:
  Certified() : folder_((std::filesystem::temp_directory_path() / "syncopate-XXXXXX").string()) {
    if (::mkdtemp(folder_.data()) == nullptr) throw SystemFailure("no folder");
    make_certificates(job(), {{"here", {"127.0.0.1", "::1", "localhost"}}, {"elsewhere", {"10.9.8.7", "node7"}}}, 2);
    make_certificates(other(), {{"here", {"127.0.0.1"}}}, 2);
  }
  ~Certified() override { std::filesystem::remove_all(folder_); }
  Certified(const Certified&) = delete;
  Certified& operator=(const Certified&) = delete;

  [[nodiscard]] std::string job() const { return folder_ + "/job"; }
  [[nodiscard]] std::string other() const { return folder_ + "/other"; }
  [[nodiscard]] static CertificateFiles of(const std::string& folder, const std::string& host) {
    return {folder + "/authority.pem", folder + "/" + host + ".pem", folder + "/" + host + "-key.pem"};
  }
  [[nodiscard]] static EndOptions end(const std::string& identity, const CertificateFiles& files) {
    EndOptions options = end_named(identity);
    options.certificates = files;
    return options;
  }
  /// The result of `dial` within a short time.
  [[nodiscard]] static std::string hasty(const Server& server, EndOptions options) {
    options.patience = 1s;
    return refusal_of(server.address(), options);
  }

  std::string folder_;
};

TEST_F(Certified, EndsTalkThroughTls) {
  Server server({"127.0.0.1:0", "[::1]:0"}, end("server 0", of(job(), "here")),
                [](Stream& stream, const std::string& message) { stream.send(0, {}, body_of(message)); });
  for (const std::size_t index : {0U, 1U}) {
    Record record;
    const auto stream = dial(server.address(index), end("worker 0", of(job(), "elsewhere")), record.events());
    const std::string message(kMostBodyBytes, 'x');
    stream->send(0, {}, body_of(message));
    EXPECT_TRUE(record.await_messages(1).at(0) == message);
  }
}

TEST_F(Certified, AWorkerWithoutACertificateOfTheJobIsNotReached) {
  Server server({"127.0.0.1:0"}, end("server 0", of(job(), "here")));
  EXPECT_EQ(hasty(server, end_named("worker 0")), "PeerLost") << "no certificate";
  CertificateFiles files = of(other(), "here");
  EXPECT_EQ(hasty(server, end("worker 0", files)), "PeerLost") << "another authority on both sides";
  files.authority = job() + "/authority.pem";
  EXPECT_EQ(hasty(server, end("worker 0", files)), "PeerLost") << "trusts the server, and is not trusted";
  EXPECT_EQ(server.accepted(), 0U);
}

TEST_F(Certified, AServerWithoutACertificateForItsAddressIsNotTrusted) {
  Server elsewhere({"127.0.0.1:0"}, end("server 0", of(job(), "elsewhere")));
  EXPECT_EQ(hasty(elsewhere, end("worker 0", of(job(), "here"))), "PeerLost") << "names another host";
  CertificateFiles files = of(other(), "here");
  files.authority = job() + "/authority.pem";
  Server strange({"127.0.0.1:0"}, end("server 0", files));
  EXPECT_EQ(hasty(strange, end("worker 0", of(job(), "here"))), "PeerLost") << "by another authority";
  Server plain;
  EXPECT_EQ(hasty(plain, end("worker 0", of(job(), "here"))), "PeerLost") << "does not speak TLS";
}

TEST_F(Certified, ACertificateDoesNotStandForTheSecret) {
  Server server({"127.0.0.1:0"}, end("server 0", of(job(), "here")));
  EndOptions options = end("worker 0", of(job(), "here"));
  options.secret = "another secret, long enough";
  EXPECT_EQ(refusal_of(server.address(), options), "Unauthorized");
}

TEST_F(Certified, FilesAreTheirOwnersAloneAndOpenKeysAreRefused) {
  for (const auto& file : std::filesystem::directory_iterator(job())) {
    struct stat status {};
    ASSERT_EQ(::stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << file.path();
  }
  const CertificateFiles files = of(job(), "here");
  ASSERT_EQ(::chmod(files.key.c_str(), 0644), 0);
  EXPECT_THROW(std::ignore = listen({"127.0.0.1:0"}, end("server 0", files), {}), Misuse);
}

TEST_F(Certified, FilesThatAreNoCertificatesAreRefusedByName) {
  CertificateFiles files = of(job(), "here");
  files.certificate = job() + "/none.pem";
  EXPECT_THROW(std::ignore = listen({"127.0.0.1:0"}, end("server 0", files), {}), Misuse);
  std::ofstream(files.certificate) << "no certificate";
  EXPECT_THROW(std::ignore = dial("127.0.0.1:1", end("worker 0", files), {}), Misuse);
}

TEST_F(Certified, AServerRefusesAKeyThatIsNotOfItsCertificate) {
  CertificateFiles files = of(job(), "here");
  files.key = job() + "/elsewhere-key.pem";
  EXPECT_THROW(std::ignore = listen({"127.0.0.1:0"}, end("server 0", files), {}), Misuse);
}

TEST_F(Certified, WhatCannotBeCertifiedIsRefused) {
  const std::string folder = folder_ + "/third";
  EXPECT_THROW(make_certificates(job(), {{"here", {"127.0.0.1"}}}, 2), Misuse) << "keeps what is there";
  EXPECT_THROW(make_certificates(folder, {}, 2), Misuse);
  EXPECT_THROW(make_certificates(folder, {{"../here", {"127.0.0.1"}}}, 2), Misuse);
  EXPECT_THROW(make_certificates(folder, {{"here", {}}}, 2), Misuse);
  EXPECT_THROW(make_certificates(folder, {{"here", {"a,IP:1.2.3.4"}}}, 2), Misuse);
  EXPECT_THROW(make_certificates(folder, {{"here", {"127.0.0.1"}}}, 0), Misuse);
}

TEST(Options, ThatWouldOpenTheJobToOthersAreRefused) {
  EndOptions options = end_named("server 0");
  for (const char* address : {"0.0.0.0:0", "10.0.0.5:0", "[fd00::5]:0", "[::]:0"})
    EXPECT_THROW(std::ignore = listen({address}, options, {}), Misuse) << address << " without certificates";
  EXPECT_THROW(std::ignore = dial("node5:7000", options, {}), Misuse);
  options.certificates.emplace();
  options.secret = "";
  EXPECT_THROW(std::ignore = listen({"0.0.0.0:0"}, options, {}), Misuse) << "without a secret";
}

TEST(Options, ThatAreOutOfRangeAreRefused) {
  for (const char* address : {"", "@", "@a b", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x", "[::1:5",
                              "::1:5", ":5", "a/b:5", "unix:/tmp/x"})
    EXPECT_THROW(std::ignore = dial(address, end_named("worker 0"), {}), Misuse) << address;
  EXPECT_THROW(std::ignore = listen({"localhost:0"}, end_named("server 0"), {}), Misuse);
  EXPECT_THROW(std::ignore = listen({}, end_named("server 0"), {}), Misuse);
  const auto refused = [](auto&& change) {
    EndOptions options = end_named("worker 0");
    change(options);
    EXPECT_THROW(std::ignore = dial("127.0.0.1:1", options, {}), Misuse);
  };
  refused([](EndOptions& options) { options.identity = ""; });
  refused([](EndOptions& options) { options.identity = std::string(65, 'x'); });
  refused([](EndOptions& options) { options.identity = "two\nlines"; });
  refused([](EndOptions& options) { options.job = std::string(65, 'x'); });
  refused([](EndOptions& options) { options.silence = 99ms; });
  refused([](EndOptions& options) { options.patience = 0ms; });
  refused([](EndOptions& options) { options.patience = std::chrono::hours(25); });
}

}  // namespace
}  // namespace syncopate::server::rpc
