// A ring and its words with anything in them, before the reader and before the writer.
#include "transport/shm/ring_buffer.hpp"

#include <tuple>
#include <vector>

#include "fuzz/target.hpp"
#include "fuzz/transport/records.hpp"

namespace syncopate::fuzz::target {

using namespace transport::shm;

namespace {

/// Whether a piece lies within the addresses of the ring.
bool lies_in(const Region& region, const base::Bytes piece) {
  const auto at = piece.data() - region.ring(Side::maker);
  return piece.size() <= kMostPiece && at >= 0 && static_cast<std::size_t>(at) + piece.size() <= 2 * kRingBytes;
}

void read(const Region& region, Fields fields) {
  RingReader reader(region.ring(Side::maker), region.tail(Side::maker));
  std::uint64_t at = 0;
  while (!fields.empty()) {
    const RawRecord raw = record_of(fields, at);
    std::byte* place = region.ring(Side::maker) + at % kRingBytes;
    std::memcpy(place, &raw, sizeof raw);
    const auto record = reader.look();
    std::memset(place, 0, sizeof raw);
    if (!record) return;
    hold(lies_in(region, record->piece), "a piece lies within the ring");
    hold(record->end > at && record->end - at <= kRingBytes, "a record is shorter than the ring");
    std::ignore = reader.hold(*record);
    reader.pass(*record);
    at = record->end;
    const auto choice = fields.take<std::uint8_t>();
    if (choice % 4 != 0) reader.give_back(at);
  }
}

void write(const Region& region, Fields fields) {
  std::uint64_t& tail = *region.tail(Side::guest);
  tail = 0;
  RingWriter writer(region.ring(Side::guest), &tail);
  while (!fields.empty()) {
    const std::vector<std::byte> piece(fields.take<std::uint16_t>());
    if (!writer.push({{5, 9}, piece.size()}, piece) && tail == 0) tail = fields.take<std::uint32_t>();
    const auto position = fields.take<std::uint16_t>() * std::uint64_t{8};
    may_refuse<Corrupt>([&] { hold(writer.replied(position, 1 + piece.size() / 8).size() <= kMostPiece, "a reply"); });
    std::ignore = writer.revoke(position / kLineBytes * kLineBytes);
  }
}

}  // namespace

void ring_buffer(Input input) {
  static const Region region = Region::make();
  may_refuse<Corrupt>([&] { read(region, Fields(input)); });
  may_refuse<Corrupt>([&] { write(region, Fields(input)); });
}

}  // namespace syncopate::fuzz::target
