// Messages of a rendezvous over TCP: a request with one rank's text, and an answer with all texts or an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "syncopate/error.hpp"

namespace syncopate::transport::connect::rendezvous {

struct Request {
  std::int32_t size = 0;         ///< ranks of the job, by the caller's settings
  std::int64_t patience_ms = 0;  ///< time until the caller gives up
  std::string text;
};

struct Answer {
  std::optional<ErrorKind> error_kind;  ///< empty: `texts` holds every rank's text
  std::string error;
  std::vector<std::string> texts;
};

[[nodiscard]] std::size_t most_answer_bytes(int size) noexcept;
[[nodiscard]] std::string encode(const Request& request);
[[nodiscard]] std::string encode(const Answer& answer);
/// Both throw Corrupt.
[[nodiscard]] Request decode_request(std::string_view message);
[[nodiscard]] Answer decode_answer(std::string_view message);

}  // namespace syncopate::transport::connect::rendezvous
