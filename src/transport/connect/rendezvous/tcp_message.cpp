// Messages of a rendezvous over TCP: a request with one rank's text, and an answer with all texts or an error.
#include "transport/connect/rendezvous/tcp_message.hpp"

#include "base/wire.hpp"
#include "transport/connect/rendezvous/rendezvous.hpp"

namespace syncopate::transport::connect::rendezvous {

namespace {
constexpr std::size_t kMaxRanks = 1 << 20;
}

std::size_t most_answer_bytes(int size) noexcept {
  return 4 * kMaxText + static_cast<std::size_t>(size) * (kMaxText + 8);
}

std::string encode(const Request& request) {
  base::WireWriter out;
  out.number(request.size);
  out.number(request.patience_ms);
  out.text(request.text, kMaxText);
  return out.take();
}

std::string encode(const Answer& answer) {
  base::WireWriter out;
  out.number(static_cast<std::uint8_t>(answer.error_kind.has_value()));
  if (answer.error_kind) out.error_kind(*answer.error_kind);
  out.text(answer.error, kMaxText);
  out.number(static_cast<std::uint32_t>(answer.texts.size()));
  for (const std::string& text : answer.texts) out.text(text, kMaxText);
  return out.take();
}

Request decode_request(std::string_view message) {
  base::WireReader in(message);
  Request request;
  request.size = in.number<std::int32_t>();
  request.patience_ms = in.number<std::int64_t>();
  request.text = in.text(kMaxText);
  in.end();
  return request;
}

Answer decode_answer(std::string_view message) {
  base::WireReader in(message);
  Answer answer;
  const auto failed = in.number<std::uint8_t>();
  if (failed > 1) in.refuse("it neither failed nor succeeded");
  if (failed == 1) answer.error_kind = in.error_kind();
  answer.error = in.text(kMaxText);
  const auto count = in.number<std::uint32_t>();
  if (count > kMaxRanks) in.refuse("too many ranks");
  for (std::uint32_t i = 0; i < count; ++i) answer.texts.push_back(in.text(kMaxText));
  in.end();
  return answer;
}

}  // namespace syncopate::transport::connect::rendezvous
