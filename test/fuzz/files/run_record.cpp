// The record of a training run in its folder: configuration, rows and spans.
#include <unistd.h>

#include <fstream>

#include "fuzz/target.hpp"
#include "report/record/run.hpp"

namespace syncopate::fuzz::target {

namespace {

/// In memory where there is such a folder; it goes with the process.
struct Folder {
  Folder() {
    std::error_code none;
    const bool in_memory = std::filesystem::is_directory("/dev/shm", none);
    std::string pattern = (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path()) / "syncopate-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder");
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

}  // namespace

void run_record(Input input) {
  static const Folder folder;
  std::string_view text = text_of(input);
  for (const char* file : {"run.json", "rank-0.jsonl", "trace-0.jsonl"}) {
    const std::size_t end = std::min(text.find('\x1c'), text.size());
    std::ofstream(folder.path / file, std::ios::binary) << text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  may_refuse<Corrupt>([&] {
    const auto run = tools::report::record::read_run(folder.path);
    hold(!run.ranks.empty(), "a run has a rank");
  });
}

}  // namespace syncopate::fuzz::target
