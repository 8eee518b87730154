// Address: where a listener can be reached, as text and as gRPC's target.
#include "server/rpc/socket/address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "base/require.hpp"

namespace syncopate::server::rpc {

namespace {

constexpr std::size_t kMostNameLetters = 100;

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-' || letter == '_' || letter == '.';
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameLetters && std::ranges::all_of(text, is_letter);
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  return !text.empty() && read.ec == std::errc{} && read.ptr == text.data() + text.size();
}

/// Reads the host's part; false if it is malformed.
bool read_host(std::string_view text, Address& into) {
  const bool is_bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string host(is_bracketed ? text.substr(1, text.size() - 2) : text);
  in6_addr six{};
  in_addr four{};
  if (is_bracketed) {
    into.is_numeric = ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
    into.is_loopback = into.is_numeric && IN6_IS_ADDR_LOOPBACK(&six);
    return into.is_numeric;
  }
  into.is_numeric = ::inet_pton(AF_INET, host.c_str(), &four) == 1;
  into.is_loopback = into.is_numeric && ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
  return into.is_numeric || is_word(host);
}

}  // namespace

Address parse_address(const std::string& text) {
  Address address{.text = text, .target = text};
  bool is_right = false;
  if (text.starts_with('@')) {
    is_right = is_word(std::string_view(text).substr(1));
    address.target = "unix-abstract:" + text.substr(1);
    address.is_named = address.is_numeric = address.is_loopback = true;
  } else if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
    is_right = read_host(std::string_view(text).substr(0, colon), address) &&
               is_port(std::string_view(text).substr(colon + 1));
  }
  base::require(
      is_right,
      "'{}' is not an address of a parameter server; allowed: 10.0.0.5:7000, [fd00::5]:7000, host:7000, or @name on "
      "one host (letters, digits, '.', '-', '_'; at most {})",
      text, kMostNameLetters);
  return address;
}

}  // namespace syncopate::server::rpc
