// Siblings: programs in the same folder as this one, which are built only if their dependencies were found.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace syncopate::tools::launch {

struct Sibling {
  const char* program;        ///< its file, in the folder of this one
  const char* needs;          ///< and where that comes from: for the one who does not have it
  bool uses_pytorch = false;  ///< a wheel has it without libtorch, which PyTorch brings
};

inline constexpr Sibling kTrainer{
    "syncopate-train",
    "libtorch; in the source tree run scripts/install, or configure with -DSYNCOPATE_LIBTORCH=DIR, and build again",
    true};
inline constexpr Sibling kServer{"syncopate-server", "the build of all programs; build or install again"};
/// A worker of `syncopate bench server`.
inline constexpr Sibling kBenchServer{"bench_server", "SYNCOPATE_BENCHMARKS=ON"};

/// Its absolute path. Throws Misuse where it was not built, or where a wheel's PyTorch is missing or another one.
[[nodiscard]] std::string path_of(const Sibling& sibling, const Session& session);
/// This process becomes that program with these words, and --json where that was asked for. Throws Misuse like
/// path_of.
[[noreturn]] void become(const Sibling& sibling, const Session& session, std::vector<std::string> words);
/// Defines a command that becomes that program, with all its words, --help and --json among them. `sibling` outlives
/// the command.
void define_as(const Sibling& sibling, CLI::App& app, Session& session);

}  // namespace syncopate::tools::launch
