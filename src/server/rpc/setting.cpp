// Setting: how both ends set up gRPC: limits, silence, and which peers may connect.
#include "server/rpc/setting.hpp"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/env.hpp"
#include "base/require.hpp"
#include "server/rpc/proof.hpp"

namespace syncopate::server::rpc {

namespace {

constexpr std::chrono::milliseconds kShortestSilence{100}, kLongest{std::chrono::hours(24)};

int milliseconds(base::Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

Settings common_settings() {
  return {
      {GRPC_ARG_HTTP2_BDP_PROBE, 0},
      {GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1},       // `unpack` checks it, and names the end; see kListenerBytes
      {GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0},  // a small message cannot become a large one
      {GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0},
  };
}

std::string read_pem(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  base::require(file.good(), "cannot read the {} '{}': {}", what, path, std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  base::require(text.find("-----BEGIN ") != std::string::npos, "'{}' has no {} in PEM form", path, what);
  return text;
}

struct Pems {
  std::string authority, certificate, key;
};

Pems read_pems(const CertificateFiles& files) {
  std::error_code unknown;
  const auto others = std::filesystem::status(files.key, unknown).permissions() & std::filesystem::perms::others_all;
  base::require(unknown || others == std::filesystem::perms::none,
                "the key '{}' is readable by every user of this host; make it private: chmod 600 {}", files.key,
                files.key);
  return {read_pem(files.authority, "certificate of the job's authority"),
          read_pem(files.certificate, "certificate of this host"), read_pem(files.key, "key of this host")};
}

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* made) const {
    Free(made);
  }
};

using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

Memory memory_of(const std::string& pem) { return Memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

/// Checks the files, because gRPC reports nothing if it cannot use them.
void require_usable(const Pems& pems, const CertificateFiles& files) {
  const auto certificate = [](const std::string& pem) {
    return Certificate(PEM_read_bio_X509(memory_of(pem).get(), nullptr, nullptr, nullptr));
  };
  base::require(certificate(pems.authority) != nullptr, "'{}' is not a valid certificate", files.authority);
  const Certificate own = certificate(pems.certificate);
  base::require(own != nullptr, "'{}' is not a valid certificate", files.certificate);
  const Key key(PEM_read_bio_PrivateKey(memory_of(pems.key).get(), nullptr, nullptr, nullptr));
  base::require(key != nullptr, "'{}' is not a valid key", files.key);
  const bool is_pair = X509_check_private_key(own.get(), key.get()) == 1;
  ERR_clear_error();
  base::require(is_pair, "the key '{}' is not that of the certificate '{}'", files.key, files.certificate);
}

}  // namespace

void quieten_grpc() {
  constexpr int kNothing = GPR_LOG_SEVERITY_ERROR + 1;
  if (!base::Environment::of_process().text("GRPC_VERBOSITY"))
    gpr_set_log_verbosity(static_cast<gpr_log_severity>(kNothing));
}

Settings caller_settings(const EndOptions& options) {
  Settings settings = common_settings();
  const int patience = milliseconds(options.patience);
  settings.insert(settings.end(), {
                                      {GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1},  // a connection for each stream
                                      {GRPC_ARG_ENABLE_RETRIES, 0},
                                      {GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1},
                                      {GRPC_ARG_ENABLE_HTTP_PROXY, 0},
                                      {GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50},
                                      {GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500},
                                      {GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, patience},  // limit of one attempt to connect
                                  });
  return settings;
}

Settings answerer_settings(const EndOptions& options) {
  Settings settings = common_settings();
  const int patience = milliseconds(options.patience);
  settings.insert(settings.end(),
                  {
                      {GRPC_ARG_MAX_CONCURRENT_STREAMS, 4},              // per connection
                      {GRPC_ARG_MAX_CONNECTION_IDLE_MS, patience},       // limit of a connection without a call
                      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, patience},  // limit of a silent connection
                  });
  return settings;
}

void require_allowed(const EndOptions& options, const Address& address) {
  base::require(is_name(options.identity), "the identity '{}' is not allowed; allowed: 1 to {} printable characters",
                options.identity, kMostNameBytes);
  base::require(options.job.empty() || is_name(options.job),
                "the job's name '{}' is not allowed; allowed: at most {} printable characters", options.job,
                kMostNameBytes);
  base::require(options.silence >= kShortestSilence && options.silence <= kLongest,
                "silence is {} ms; allowed: {} ms to one day",
                milliseconds(std::min<base::Duration>(options.silence, kLongest)), kShortestSilence.count());
  base::require(options.patience >= kShortestSilence && options.patience <= kLongest,
                "patience is {} ms; allowed: {} ms to one day",
                milliseconds(std::min<base::Duration>(options.patience, kLongest)), kShortestSilence.count());
  if (address.is_loopback) return;
  base::require(!options.secret.empty(),
                "{} is reachable from other hosts, and there is no secret; set SYNCOPATE_SECRET_FILE at both ends",
                address.text);
  base::require(options.certificates.has_value(),
                "{} is reachable from other hosts, and there are no certificates; give the authority's, this host's "
                "and its key (`syncopate server certificates` makes them), or use an address of loopback",
                address.text);
}

std::shared_ptr<grpc::ChannelCredentials> caller_credentials(const EndOptions& options, const Address& address) {
  if (!options.certificates || address.is_named) return grpc::InsecureChannelCredentials();
  Pems pems = read_pems(*options.certificates);
  return grpc::SslCredentials({std::move(pems.authority), std::move(pems.key), std::move(pems.certificate)});
}

std::shared_ptr<grpc::ServerCredentials> answerer_credentials(const EndOptions& options, const Address& address) {
  if (!options.certificates || address.is_named) return grpc::InsecureServerCredentials();
  Pems pems = read_pems(*options.certificates);
  require_usable(pems, *options.certificates);
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = std::move(pems.authority);
  tls.pem_key_cert_pairs.push_back({std::move(pems.key), std::move(pems.certificate)});
  return grpc::SslServerCredentials(tls);
}

}  // namespace syncopate::server::rpc
