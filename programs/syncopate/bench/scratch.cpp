// Scratch folders are made where the system keeps temporary files, and removed with all that is in them.
#include "bench/scratch.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::bench {

namespace fs = std::filesystem;

Scratch::Scratch() : path_((fs::temp_directory_path() / "syncopate-bench-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr)
    launch::process::fail(fmt::format("cannot make the folder {} (TMPDIR names another place)", path_));
}

Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace syncopate::tools::bench
