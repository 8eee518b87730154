// Seal: a rank's rendezvous text carries a code made with the job's secret, so that no storage or relay can change it.
#pragma once

#include <string>

namespace syncopate::transport::connect {

/// The sender of a text: a rank, and the size of its job.
struct Speaker {
  int rank = 0;
  int size = 1;
};

/// `text` of the rank `of`, with a code if there is a secret. The code also covers rank and size: no other rank can use
/// the text.
[[nodiscard]] std::string seal(const std::string& text, const Speaker& of, const std::string& secret);
/// The text that the rank `of` has sealed. Throws Unauthorized if it was changed, or sealed by another rank, or with
/// another secret, or if only one of the two ranks has a secret; Corrupt if it is not a sealed text.
[[nodiscard]] std::string unseal(const std::string& sealed, const Speaker& of, const std::string& secret);

}  // namespace syncopate::transport::connect
