// Seal: a rank's rendezvous text carries a code made with the job's secret, so that no storage or relay can change it.
#include "transport/connect/seal.hpp"

#include <fmt/format.h>

#include "base/crypto/secret.hpp"
#include "syncopate/error.hpp"

namespace syncopate::transport::connect {

using base::crypto::Digest, base::crypto::is_same, base::crypto::mac_of;

namespace {

// A sealed text: u8 whether a code follows the text (0 or 1), the text, the code (32 bytes).
constexpr char kOpen = 0, kSealed = 1;

Digest code_of(std::string_view text, const Speaker& of, const std::string& secret) {
  std::string all = "S";
  for (const std::int32_t number : {of.rank, of.size})
    all.append(reinterpret_cast<const char*>(&number), sizeof number);
  all.append(text);
  return mac_of(secret, std::as_bytes(std::span(all)));
}

[[noreturn]] void refuse(int rank, std::string_view why) {
  throw Unauthorized(fmt::format("the text of rank {} at the rendezvous {}", rank, why), {.peer = rank});
}

}  // namespace

std::string seal(const std::string& text, const Speaker& of, const std::string& secret) {
  if (secret.empty()) return kOpen + text;
  const Digest code = code_of(text, of, secret);
  return kSealed + text + std::string(reinterpret_cast<const char*>(code.data()), code.size());
}

std::string unseal(const std::string& sealed, const Speaker& of, const std::string& secret) {
  const bool is_sealed = sealed.starts_with(kSealed);
  const std::size_t least = is_sealed ? 1 + Digest{}.size() : 1;
  if (sealed.size() < least || (!is_sealed && sealed.front() != kOpen))
    throw Corrupt(fmt::format("the rendezvous text of rank {} is malformed", of.rank), {.peer = of.rank});
  if (!is_sealed && !secret.empty())
    refuse(of.rank, "is not sealed with the job's secret: give every rank the same SYNCOPATE_SECRET_FILE");
  if (is_sealed && secret.empty())
    refuse(of.rank, "is sealed with a secret that this rank lacks: give every rank the same SYNCOPATE_SECRET_FILE");
  const std::string text = sealed.substr(1, sealed.size() - least);
  if (is_sealed && !is_same(code_of(text, of, secret), std::as_bytes(std::span(sealed)).last(Digest{}.size())))
    refuse(of.rank,
           "has a wrong code: that rank has another secret, or the text was changed (which users may write to the "
           "rendezvous?)");
  return text;
}

}  // namespace syncopate::transport::connect
