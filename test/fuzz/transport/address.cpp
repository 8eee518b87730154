// Addresses as text: an accepted text gives an address whose own text means the same.
#include "transport/socket/address.hpp"

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void address(Input input) {
  may_refuse<Misuse>([&] {
    const auto found = transport::socket::Address::parse(text_of(input));
    hold(transport::socket::Address::parse(found.text()) == found, "parsing an address text gives the same address");
  });
}

}  // namespace syncopate::fuzz::target
