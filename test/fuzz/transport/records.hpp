// Records: what another process may write into a ring, derived from a few bytes each.
#pragma once

#include "fuzz/target.hpp"
#include "transport/shm/ring_buffer.hpp"

namespace syncopate::fuzz {

/// The fields of a record as they lie in the ring (ring_buffer.hpp).
struct RawRecord {
  std::uint64_t mark, operation, signature, frame_bytes;
  std::uint32_t piece_bytes, kind;
  std::uint64_t place, hold, unused;
};
static_assert(sizeof(RawRecord) == transport::shm::kLineBytes);

/// A record for the position `at`. Most fields are valid, so that the input passes the first check.
[[nodiscard]] inline RawRecord record_of(Fields& fields, std::uint64_t at) {
  const auto wrong = fields.take<std::uint8_t>();
  const auto choice = fields.take<std::uint8_t>();
  const auto bytes = fields.take<std::uint16_t>();
  RawRecord record{at + 1, 5, 9, bytes, bytes, choice % transport::shm::kKinds, fields.take<std::uint16_t>(), 0, 0};
  if (record.kind != 0) record.piece_bytes = 2 * sizeof(std::uint64_t);
  if ((wrong & 1) != 0) record.mark = fields.take<std::uint64_t>();
  if ((wrong & 2) != 0) record.frame_bytes = fields.take<std::uint64_t>();
  if ((wrong & 4) != 0) record.piece_bytes = fields.take<std::uint32_t>();
  if ((wrong & 8) != 0) record.kind = fields.take<std::uint32_t>();
  if ((wrong & 16) != 0) record.place = fields.take<std::uint64_t>();
  if ((wrong & 32) != 0) record.hold = fields.take<std::uint8_t>();
  if ((wrong & 64) != 0) record.operation += choice / 128;
  return record;
}

}  // namespace syncopate::fuzz
