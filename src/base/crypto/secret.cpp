// Secret: the bytes that the ranks of one job share, and the codes that require them.
#include "base/crypto/secret.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/require.hpp"

namespace syncopate::base::crypto {

namespace {
constexpr std::size_t kMostSecretBytes = 4096;
}

std::string read_secret(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "cannot read the secret file '{}': {}", path, std::strerror(errno));
  std::error_code unknown;
  const auto others = std::filesystem::status(path, unknown).permissions() & std::filesystem::perms::others_all;
  require(unknown || others == std::filesystem::perms::none,
          "the secret file '{}' is accessible to other users of this host; restrict it to yours: chmod 600 {}", path,
          path);
  std::string secret(kMostSecretBytes + 1, '\0');
  secret.resize(
      static_cast<std::size_t>(file.read(secret.data(), static_cast<std::streamsize>(secret.size())).gcount()));
  require(secret.size() <= kMostSecretBytes, "the secret in '{}' is longer than {} bytes; allowed: 16 to {} bytes",
          path, kMostSecretBytes, kMostSecretBytes);
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  require(secret.size() >= 16, "the secret in '{}' has {} bytes; allowed: at least 16", path, secret.size());
  return secret;
}

Digest mac_of(const std::string& secret, ConstBytes text) {
  Digest code{};
  unsigned int size = code.size();
  const auto* made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(code.data()), &size);
  if (made == nullptr || size != code.size())
    throw SystemFailure("the cryptographic library cannot compute HMAC-SHA256");
  return code;
}

bool is_same(ConstBytes one, ConstBytes other) noexcept {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Digest digest_of(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    const std::uint64_t size = text.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof size);
    all.append(text);
  }
  Digest digest{};
  unsigned int size = digest.size();
  if (EVP_Digest(all.data(), all.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, EVP_sha256(),
                 nullptr) != 1)
    throw SystemFailure("the cryptographic library cannot compute SHA-256");
  return digest;
}

}  // namespace syncopate::base::crypto
