// Executes a program that is in the same folder as this one.
#include "launch/sibling.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {

std::string path_of(const Sibling& sibling, const Session& session) {
  const auto program = std::filesystem::path(session.program).parent_path() / sibling.program;
  if (access(program.c_str(), X_OK) != 0)
    throw Misuse(fmt::format("{} was not built: it needs {} (expected at {})", sibling.program, sibling.needs,
                             program.string()));
  return program.string();
}

void become(const Sibling& sibling, const Session& session, std::vector<std::string> words) {
  words.insert(words.begin(), path_of(sibling, session));
  if (session.json) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  throw SystemFailure(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
}

}  // namespace syncopate::tools::launch
