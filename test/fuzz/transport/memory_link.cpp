// Shared memory between two ranks, whose other end writes what it likes into the ring.
#include "fuzz/target.hpp"
#include "fuzz/transport/ends.hpp"
#include "fuzz/transport/records.hpp"
#include "transport/shm/link.hpp"
#include "transport/shm/shared_memory.hpp"

namespace syncopate::fuzz::target {

using namespace transport;
using namespace transport::shm;

namespace {

/// A link whose peer made the memory.
struct Opened {
  Opened() {
    link.attach(std::move(ends.tested), Side::guest);
    std::vector<Event> none;
    const bool is_given = send_descriptor(ends.peer.socket(), region.memory()) && theirs->pass(ends.peer.socket());
    link.progress(none);
    hold(is_given && std::as_const(link).open(), "a peer with sealed memory is let in");
  }
  /// Where the next record belongs.
  std::uint64_t write(const RawRecord& raw, std::uint64_t at) {
    std::memcpy(region.ring(Side::maker) + at % kRingBytes, &raw, sizeof raw);
    const std::uint64_t piece = raw.piece_bytes <= kInlineBytes ? 0 : raw.piece_bytes;
    return at + kLineBytes + (piece + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  /// Gives an arrival back, or answers it where it lies.
  void settle(std::vector<Event>& finished, std::uint8_t choice) {
    const Event event = finished.back();
    finished.pop_back();
    if (!event.arrival) return;
    unsigned sum = 0;
    for (const std::byte byte : event.bytes) sum += static_cast<unsigned>(byte);
    if (choice % 2 == 0 && sum % 2 == 0 && !event.bytes.empty())
      link.reply(event.token, {1, {6, 9}, event.bytes, 99}, finished);
    else
      std::ignore = link.release(event.token);
  }

  Ends ends;
  Region region = Region::make();
  std::shared_ptr<Heap> own = Heap::of(std::uint64_t{4} << 20), theirs = Heap::of(std::uint64_t{1} << 20);
  LinkTraffic traffic;
  Link link{1, *own, traffic};
};

}  // namespace

void memory_link(Input input) {
  Opened opened;
  std::vector<std::shared_ptr<std::byte[]>> memory;
  std::vector<Event> finished;
  std::uint64_t at = 0;
  for (Fields fields(input); !fields.empty() && memory.size() < 32;) {
    const auto choice = fields.take<std::uint8_t>();
    if (choice % 3 == 0) {
      const std::size_t bytes = fields.take<std::uint16_t>();
      memory.push_back(choice % 2 == 0 ? opened.own->allocate(bytes) : std::make_unique<std::byte[]>(bytes));
      opened.link.receive({5, 9}, {memory.back().get(), bytes}, memory.size());
    } else if (choice % 3 == 1) {
      at = opened.write(record_of(fields, at), at);
    } else if (!finished.empty()) {
      opened.settle(finished, choice);
    }
    opened.link.progress(finished);
    if (opened.link.link_failure()) break;
  }
  opened.link.withdraw();
}

}  // namespace syncopate::fuzz::target
