// Certificates: the job's own authority and a certificate for each host, for TLS between workers and servers.
#include "server/rpc/certificates.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/require.hpp"

namespace syncopate::server::rpc {

namespace {

template <class T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* object) const noexcept { kFree(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION, X509_EXTENSION_free>>;
using File = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;

constexpr int kMostDays = 3650;

void need(bool done) {
  if (!done) throw SystemFailure("the cryptographic library cannot make a certificate");
}

bool is_word(const std::string& text) {
  const auto is_letter = [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_';
  };
  return !text.empty() && text.size() <= 64 && text.front() != '.' && std::ranges::all_of(text, is_letter);
}

bool is_numeric(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1 || ::inet_pton(AF_INET6, text.c_str(), &address) == 1;
}

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  need(key != nullptr);
  return key;
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  need(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

void set_random_number(X509* certificate) {
  unsigned char bytes[16];
  need(RAND_bytes(bytes, sizeof bytes) == 1);
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7F) | 0x40);  // positive, and of full length
  BIGNUM* const number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool done = number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  need(done);
}

/// The common fields of all certificates; without issuer, extensions and signature.
Certificate begin_certificate(EVP_PKEY* key, const std::string& name, int days) {
  constexpr long kHour = 3600, kDay = 24 * kHour;
  Certificate certificate(X509_new());
  need(certificate != nullptr && X509_set_version(certificate.get(), 2) == 1);
  set_random_number(certificate.get());
  need(X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kHour) != nullptr);  // clocks differ
  need(X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * kDay) != nullptr);
  need(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                                  reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1);
  need(X509_set_pubkey(certificate.get(), key) == 1);
  return certificate;
}

struct Authority {
  Key key;
  Certificate certificate;
};

Authority make_authority(int days) {
  Authority made{make_key(), nullptr};
  made.certificate = begin_certificate(made.key.get(), "Syncopate job", days);
  X509* const certificate = made.certificate.get();
  need(X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) == 1);
  extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(certificate, certificate, NID_key_usage, "critical,keyCertSign");
  need(X509_sign(certificate, made.key.get(), EVP_sha256()) > 0);
  return made;
}

Certificate certify(const Authority& authority, EVP_PKEY* key, const CertifiedHost& host, int days) {
  Certificate certificate = begin_certificate(key, host.name, days);
  X509* const issuer = authority.certificate.get();
  need(X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer)) == 1);
  std::string called;
  for (const std::string& name : host.called)
    called += (called.empty() ? "" : ",") + (is_numeric(name) ? "IP:" + name : "DNS:" + name);
  extend(certificate.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  extend(certificate.get(), issuer, NID_key_usage, "critical,digitalSignature");
  extend(certificate.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  extend(certificate.get(), issuer, NID_subject_alt_name, called);
  need(X509_sign(certificate.get(), authority.key.get(), EVP_sha256()) > 0);
  return certificate;
}

/// Writes a new file that only its owner can read.
template <class Write>
void save(const std::string& path, Write&& write) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) throw SystemFailure("cannot make " + path + ": " + std::strerror(errno));
  std::FILE* const stream = ::fdopen(descriptor, "w");
  if (stream == nullptr) ::close(descriptor);
  const File file(stream == nullptr ? nullptr : BIO_new_fp(stream, BIO_CLOSE));
  const bool done = file != nullptr && write(file.get()) == 1 && BIO_flush(file.get()) == 1;
  if (!done) throw SystemFailure("cannot write " + path);
}

void save_certificate(const std::string& path, X509* certificate) {
  save(path, [&](BIO* file) { return PEM_write_bio_X509(file, certificate); });
}

}  // namespace

void make_certificates(const std::string& folder, const std::vector<CertifiedHost>& hosts, int days) {
  base::require(days >= 1 && days <= kMostDays, "certificates for {} days; allowed: 1 to {}", days, kMostDays);
  base::require(!hosts.empty(), "certificates for no host; allowed: 1 or more hosts");
  for (const CertifiedHost& host : hosts) {
    base::require(is_word(host.name) && host.name != "authority",
                  "the host's name '{}' is not allowed; allowed: letters, digits, '.', '-', '_', but 'authority'",
                  host.name);
    base::require(!host.called.empty(), "host {} has no name or address under which others reach it", host.name);
    for (const std::string& name : host.called)
      base::require(is_word(name) || is_numeric(name), "'{}' of host {} is neither a name nor a numeric address", name,
                    host.name);
  }
  base::require(::mkdir(folder.c_str(), S_IRWXU) == 0, "cannot make the folder {}: {}; name one that does not exist",
                folder, std::strerror(errno));
  const Authority authority = make_authority(days);
  save_certificate(folder + "/authority.pem", authority.certificate.get());
  for (const CertifiedHost& host : hosts) {
    const Key key = make_key();
    const Certificate certificate = certify(authority, key.get(), host, days);
    save_certificate(folder + "/" + host.name + ".pem", certificate.get());
    save(folder + "/" + host.name + "-key.pem",
         [&](BIO* file) { return PEM_write_bio_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  }
}

}  // namespace syncopate::server::rpc
