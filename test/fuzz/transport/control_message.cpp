// Messages of the control tree: what is taken has no other form and fits the limit.
#include "fuzz/target.hpp"
#include "transport/membership/message.hpp"

namespace syncopate::fuzz::target {

void control_message(Input input) {
  using namespace transport::membership;
  const std::string_view text = text_of(input);
  may_refuse<Corrupt>([&] {
    hold(encode(decode_message(text)) == text, "a message has one form");
    hold(text.size() <= kMaxMessage, "a message that is taken fits the limit");
  });
}

}  // namespace syncopate::fuzz::target
