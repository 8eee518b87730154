// Executes a program that is in the same folder as this one.
#include "launch/sibling.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "syncopate/error.hpp"

namespace syncopate::tools::launch {

namespace {

namespace fs = std::filesystem;

/// The version that PyTorch's folder contains, with its label ("2.15.0+cpu"); empty where it has none.
std::string version_of_pytorch(const fs::path& folder) {
  std::ifstream file(folder / "version.py");
  const std::string_view key = "__version__ = '";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(key.size(), line.find('\'', key.size()) - key.size());
  return {};
}

/// A wheel has libtorch.txt with its programs: the version of PyTorch that has to be installed next to the package.
void require_pytorch(const Sibling& sibling, const fs::path& folder) {
  std::ifstream file(folder / "libtorch.txt");
  std::string built;
  if (!(file >> built)) return;
  const fs::path pytorch = folder.parent_path().parent_path() / "torch";
  const std::string installed = version_of_pytorch(pytorch);
  if (installed.starts_with(built + ".")) return;
  const std::string state = installed.empty() ? "is not installed there" : fmt::format("there is {}", installed);
  throw Misuse(
      fmt::format("{} needs the libraries of PyTorch {} in {}, and {}: run pip install 'torch=={}.*' in the "
                  "environment of this package, or train from Python by syncopate.torch",
                  sibling.program, built, pytorch.string(), state, built));
}

}  // namespace

std::string path_of(const Sibling& sibling, const Session& session) {
  const fs::path folder = fs::path(session.program).parent_path();
  const fs::path program = folder / sibling.program;
  if (access(program.c_str(), X_OK) != 0)
    throw Misuse(fmt::format("{} was not built: it needs {} (expected at {})", sibling.program, sibling.needs,
                             program.string()));
  if (sibling.uses_pytorch) require_pytorch(sibling, folder);
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

void define_as(const Sibling& sibling, CLI::App& app, Session& session) {
  app.set_help_flag();
  app.remove_option(app.get_option("--json"));
  app.remove_option(app.get_option("--log-level"));
  app.prefix_command();
  app.callback([&sibling, &app, &session] {
    session.action = [&sibling, &session, words = words_behind(app)]() -> int { become(sibling, session, words); };
  });
}

}  // namespace syncopate::tools::launch
