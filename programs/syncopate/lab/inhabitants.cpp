// Inhabitants: which processes live on a lab's hosts.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "lab/holder.hpp"

namespace syncopate::tools::lab {
namespace {

std::string network_of(pid_t pid) {
  char text[64];
  const ssize_t length = readlink(fmt::format("/proc/{}/ns/net", pid).c_str(), text, sizeof text);
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::vector<pid_t> inhabitants(const std::vector<pid_t>& holders) {
  std::set<std::string> networks;
  for (const pid_t holder : holders) networks.insert(network_of(holder));
  networks.erase("");
  networks.erase(network_of(getpid()));
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    const bool holds = std::find(holders.begin(), holders.end(), pid) != holders.end();
    if (!holds && networks.contains(network_of(pid))) found.push_back(pid);
  }
  return found;
}

}  // namespace syncopate::tools::lab
