// Where ranks run: the hosts of `--hosts a,b:2`, and the command that starts a rank on one of them by ssh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/process/program.hpp"

namespace syncopate::tools::launch {

struct Place {
  std::string host;  ///< as ssh takes it: "name", "user@name", an address
  int slots = 1;     ///< how many ranks it takes
};

/// "a,b:2,[::1]:4" -> places; throws Misuse that shows the form.
[[nodiscard]] std::vector<Place> parse_places(std::string_view text);

/// The numeric address of a place as this machine resolves it, without "user@"; throws SystemFailure if it cannot.
[[nodiscard]] std::string address_of(const Place& place);
[[nodiscard]] bool is_loopback(std::string_view address);
/// "10.0.0.1" -> "10.0.0.1", "fe80::1" -> "[fe80::1]": as it stands in front of ":port".
[[nodiscard]] std::string bracketed(const std::string& address);

/// `program` (its environment, its argv) as a call of ssh, or of the program that SYNCOPATE_SSH names. The secret
/// travels through ssh's standard input and becomes a file on the other side, which goes with the rank; further lines
/// there are names of signals for it, and its end (ssh or the launcher died) ends the rank. The environment goes
/// through `env K=V …`, and the rank starts in the same folder where there is one.
[[nodiscard]] process::Program over_ssh(const Place& place, const process::Program& program, const std::string& secret);

}  // namespace syncopate::tools::launch
