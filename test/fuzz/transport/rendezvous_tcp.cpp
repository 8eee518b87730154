// Requests and answers of a rendezvous over TCP: what is taken has no other form.
#include "fuzz/target.hpp"
#include "transport/connect/rendezvous/tcp_message.hpp"

namespace syncopate::fuzz::target {

void rendezvous_tcp(Input input) {
  using namespace transport::connect::rendezvous;
  const std::string_view text = text_of(input);
  may_refuse<Corrupt>([&] { hold(encode(decode_request(text)) == text, "a request has one form"); });
  may_refuse<Corrupt>([&] { hold(encode(decode_answer(text)) == text, "an answer has one form"); });
}

}  // namespace syncopate::fuzz::target
