// Snapshot: one server's state of a job at one step, as a value and as a sealed file.
#pragma once

#include <string>
#include <vector>

#include "server/job/setup.hpp"
#include "server/payload.hpp"

namespace syncopate::server {

struct Snapshot {
  std::size_t server = 0;
  Clock step = 0;  ///< every block holds the updates of this number of steps of every worker
  Setup setup{};
  std::vector<Payload> images{};  ///< ServerBlock::image, by block index; then the parts of each RowTable::image
};

/// A sealed file (syncopate/tooling/sealed_file.hpp): the header is server, step and setup; the payload is each image
/// after its u64 length. Throws SystemFailure; an older file of that name then remains, and no other file.
void write_snapshot(const std::string& file, const Snapshot& snapshot);
/// Throws Corrupt naming the file, SystemFailure if it cannot be read.
[[nodiscard]] Snapshot read_snapshot(const std::string& file);
/// Parses a file's bytes; throws as `read_snapshot`.
[[nodiscard]] Snapshot snapshot_of(std::vector<std::uint8_t> bytes, const std::string& file);

}  // namespace syncopate::server
