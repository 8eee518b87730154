// Seal: what a rank says at the rendezvous carries a code by the job's secret, whoever keeps or passes the text on.
#pragma once

#include <string>

namespace syncopate::transport::connect {

/// Who speaks: a rank of so many.
struct Speaker {
  int rank = 0;
  int size = 1;
};

/// `text` of the rank `of`, with a code if there is a secret. The code covers rank and size too: a text speaks for
/// nobody else.
[[nodiscard]] std::string seal(const std::string& text, const Speaker& of, const std::string& secret);
/// The text that the rank `of` has sealed. Throws Unauthorized where it was changed, or sealed by another rank, with
/// another secret, or only one of the two ranks has a secret; Corrupt for what is no sealed text.
[[nodiscard]] std::string unseal(const std::string& sealed, const Speaker& of, const std::string& secret);

}  // namespace syncopate::transport::connect
