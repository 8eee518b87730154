// Becoming the training program.
#include "launch/trainer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {

void become_trainer(const Session& session, std::vector<std::string> words) {
  const auto program = std::filesystem::path(session.program).parent_path() / "syncopate-train";
  if (access(program.c_str(), X_OK) != 0)
    throw Misuse(
        fmt::format("syncopate-train was not built: it needs libtorch; run scripts/install, or configure with "
                    "-DSYNCOPATE_LIBTORCH=DIR, and build again (expected at {})",
                    program.string()));
  words.insert(words.begin(), program.string());
  if (session.json) words.emplace_back("--json");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw SystemFailure(fmt::format("cannot start {}: {}", program.string(), std::strerror(errno)));
}

}  // namespace syncopate::tools::launch
