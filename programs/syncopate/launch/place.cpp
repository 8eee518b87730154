// Where ranks run: the hosts of `--hosts a,b:2`, and the command that starts a rank on one of them by ssh.
#include "launch/place.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {
namespace {

// POSIX sh on the remote host. Secret and environment come over standard input, because every user can read arguments.
// The rank replaces this shell (exec), so that its exit code and signals are ssh's. A watcher holds standard input,
// forwards signals to the session's process group, and cleans up at its end. Descriptors do not pass through ssh: the
// rank reports the rank that failed first on a copy of its standard error, from which `run` takes the line.
constexpr std::size_t kMostSettings = 59'000;  // with the secret they fit into process::Program::input
constexpr std::string_view kRemoteScript = R"(mask=$(umask)
umask 077
IFS= read -r secret || exit 1
file=$(mktemp) || exit 1
printf %s "$secret" >"$file"
cd "$1" 2>/dev/null
shift
while IFS= read -r setting && [ -n "$setting" ]; do
  setting=$(printf %b. "$setting")
  set -- "${setting%.}" "$@"
done
exec 3<&0 </dev/null
watch() {
  trap "" INT TERM HUP
  while read -r signal; do kill -s "$signal" 0; done
  rm -f "$file"
  kill -s TERM 0
  kill -0 $$ && sleep 2 && kill -s KILL 0
}
watch <&3 >/dev/null 2>&1 &
exec 3<&-
umask "$mask"
exec 3>&2
blame=3:$(stat -Lc %i /proc/self/fd/3 2>/dev/null || echo 0)
exec env SYNCOPATE_SECRET_FILE="$file" SYNCOPATE_BLAME_FD="$blame" "$@")";

std::string in_quotes(std::string_view text) {
  std::string word(1, '\'');
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + '\'';
}

/// One line of what `printf %b` turns back into the text.
std::string escaped(std::string_view text) {
  std::string line;
  for (const char c : text)
    line += std::isalnum(static_cast<unsigned char>(c)) != 0 ? std::string(1, c)
                                                             : fmt::format("\\0{:03o}", static_cast<unsigned char>(c));
  return line + '\n';
}

Place parse_place(std::string_view given) {
  Place place;
  std::string_view word = given;
  const auto colon = word.rfind(':');
  const auto bracket = word.rfind(']');
  const bool counted = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (counted) {
    const std::string_view number = word.substr(colon + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place.slots);
    if (error != std::errc{} || end != number.data() + number.size() || place.slots < 1) place.slots = 0;
    word = word.substr(0, colon);
  }
  if (place.slots == 0)
    throw Misuse(
        fmt::format("--hosts: '{}' lacks a number of ranks; allowed after HOST: is a number of 1 or more", given));
  place.host = word;
  // A leading '-' would be an option of ssh.
  if (place.host.empty() || place.host.front() == '-')
    throw Misuse(
        fmt::format("--hosts: '{}' is not a host; allowed: a comma-separated list of HOST or HOST:RANKS, e.g. "
                    "a,b:2 (an IPv6 address in brackets)",
                    given));
  return place;
}

}  // namespace

std::vector<Place> parse_places(std::string_view text) {
  std::vector<Place> places;
  while (true) {
    const auto comma = text.find(',');
    places.push_back(parse_place(text.substr(0, comma)));
    if (comma == std::string_view::npos) return places;
    text.remove_prefix(comma + 1);
  }
}

std::string address_of(const Place& place) {
  std::string name = place.host.substr(place.host.rfind('@') + 1);
  if (name.size() > 2 && name.front() == '[') name = name.substr(1, name.size() - 2);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found); error != 0)
    throw SystemFailure(fmt::format("--hosts: cannot find the address of '{}': {}", name, gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  char address[NI_MAXHOST];
  getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, nullptr, 0, NI_NUMERICHOST);
  return address;
}

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

std::string bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : fmt::format("[{}]", address);
}

process::Program over_ssh(const Place& place, const process::Program& program, const std::string& secret) {
  // The outer shell turns a death by signal into 128 + signal; ssh itself would return 255.
  std::string command =
      "exec sh -c 'trap : INT TERM HUP; sh -c \"$0\" \"$@\"; exit $?' " + in_quotes(kRemoteScript) + " syncopate-rank";
  command += ' ' + in_quotes(std::filesystem::current_path().string());
  std::string settings;
  for (const auto& [name, value] : program.environment) settings += escaped(fmt::format("{}={}", name, value));
  for (const std::string& word : program.argv) command += ' ' + in_quotes(word);
  if (settings.size() > kMostSettings)
    throw Misuse(
        fmt::format("--hosts: the settings of a rank have {} bytes as text, in which a byte that is neither a "
                    "letter nor a digit has 5; allowed: {}; shorten the values of --env and SYNCOPATE_*",
                    settings.size(), kMostSettings));
  const char* ssh = std::getenv("SYNCOPATE_SSH");
  std::string host = place.host;
  if (host.front() == '[') host = host.substr(1, host.size() - 2);
  return {.argv = {ssh != nullptr && *ssh != 0 ? ssh : "ssh", "-x", "-T", "-o", "BatchMode=yes", "-o",
                   "ConnectTimeout=10", host, command},
          .environment = {},
          .input = secret + "\n" + settings + "\n",
          .signals_by_input = true};
}

}  // namespace syncopate::tools::launch
