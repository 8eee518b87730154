// Snapshot: what one server keeps of a job at one step, as a value and as a sealed file.
#pragma once

#include <string>
#include <vector>

#include "server/payload.hpp"
#include "server/table/setup.hpp"

namespace syncopate::server {

struct Snapshot {
  std::size_t server = 0;
  Clock step = 0;  ///< every block holds everybody's updates of so many steps
  Setup setup{};
  std::vector<Payload> images{};  ///< ServerBlock::image, by the index of the block
};

/// A sealed file (syncopate/tooling/sealed_file.hpp): the header is server, step and setup; the payload each image
/// after its u64 length. Throws SystemFailure; an older file of that name is then still there, and nothing beside it.
void write_snapshot(const std::string& file, const Snapshot& snapshot);
/// Throws Corrupt that names the file, SystemFailure if it cannot be read.
[[nodiscard]] Snapshot read_snapshot(const std::string& file);
/// The same of a file's bytes.
[[nodiscard]] Snapshot snapshot_of(std::vector<std::uint8_t> bytes, const std::string& file);

}  // namespace syncopate::server
