// Images of blocks: a server's complete state of a block, as bytes, from which another server continues.
#include <bit>
#include <cstring>

#include "base/wire.hpp"
#include "server/dense/server_block.hpp"
#include "syncopate/error.hpp"

namespace syncopate::server {

namespace {

constexpr std::size_t kMostFieldBytes = 2 * kMostBodyBytes;

void write(base::WireWriter& writer, base::ConstBytes bytes) {
  writer.text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kMostFieldBytes);
}

void read(base::WireReader& reader, std::span<float> values) {
  const std::string bytes = reader.text(kMostFieldBytes);
  if (bytes.size() != values.size_bytes()) reader.refuse("an image of a block of another length");
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

}  // namespace

void AnswerStream::write_to(base::WireWriter& writer) const {
  writer.number(version_);
  writer.number(static_cast<std::uint8_t>(coder_ && is_current_));
  if (version_ == 0) return;
  write(writer, std::as_bytes(std::span(shown_)));
  writer.number(static_cast<std::uint32_t>(packets_.size()));
  for (const auto& packet : packets_) write(writer, packet);
}

void AnswerStream::read_from(base::WireReader& reader) {
  version_ = reader.number<std::uint64_t>();
  is_current_ = reader.number<std::uint8_t>() != 0 && coder_;
  if (version_ == 0) return;
  if (!coder_) reader.refuse("an image has answer packets, but answers are not coded");
  shown_.resize(elements_);
  read(reader, shown_);
  const auto count = reader.number<std::uint32_t>();
  if (count > kMostPackets) reader.refuse("an image has too many packets");
  packets_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Payload packet = payload_of(reader.text(kMostFieldBytes));
    packets_.emplace_back(packet.bytes.begin(), packet.bytes.end());
  }
}

/// A job may begin with a saved state, so that there is one before the first step. Without lockstep servers have none.
bool ServerBlock::has_state_in_image() const noexcept { return rules_.in_lockstep() && has_weights_; }

Payload ServerBlock::image() const {
  base::WireWriter writer;
  writer.number(complete_);
  writer.number(static_cast<std::uint8_t>(has_weights_));
  if (has_weights_) write(writer, std::as_bytes(std::span(weights_)));
  if (has_state_in_image())
    for (const auto& state : state_) write(writer, std::as_bytes(std::span(state)));
  const std::size_t elements = weights_.size();
  for (std::size_t s = 0; s < rules_.storages.kept; ++s)
    write(writer, std::as_bytes(std::span(kept_).subspan(s * elements, elements)));
  for (const WorkerState& worker_state : workers_) {
    writer.number(static_cast<std::uint8_t>(worker_state.takes_part));
    writer.number(worker_state.process);
    writer.number(worker_state.applied);
    writer.number(worker_state.piece);
    writer.number(worker_state.clock);
    writer.number(static_cast<std::uint8_t>(worker_state.held.has_value()));
    if (!worker_state.held) continue;
    writer.number(worker_state.held_for);
    writer.number(std::bit_cast<std::uint64_t>(worker_state.rate));
    write(writer, worker_state.held->bytes);
  }
  answers_.write_to(writer);
  return payload_of(writer.take());
}

void ServerBlock::restore(base::ConstBytes image) {
  base::WireReader reader({reinterpret_cast<const char*>(image.data()), image.size()});
  complete_ = reader.number<Clock>();
  has_weights_ = reader.number<std::uint8_t>() != 0;
  if (has_weights_) read(reader, weights_);
  if (has_state_in_image())
    for (auto& state : state_) read(reader, state);
  const std::size_t elements = weights_.size();
  for (std::size_t s = 0; s < rules_.storages.kept; ++s) read(reader, std::span(kept_).subspan(s * elements, elements));
  is_shown_ = false;
  for (WorkerState& worker_state : workers_) {
    worker_state = {};
    worker_state.takes_part = reader.number<std::uint8_t>() != 0;
    worker_state.process = reader.number<std::uint64_t>();
    worker_state.applied = reader.number<Clock>();
    worker_state.piece = reader.number<std::uint32_t>();
    worker_state.clock = reader.number<Clock>();
    if (reader.number<std::uint8_t>() == 0) continue;
    worker_state.held_for = reader.number<Clock>();
    worker_state.rate = std::bit_cast<double>(reader.number<std::uint64_t>());
    worker_state.held = payload_of(reader.text(kMostFieldBytes));
    require_sound(worker_state.held->bytes, worker_state.held_for);
  }
  answers_.read_from(reader);
  reader.end();
}

void ServerBlock::begin_again(Clock step) {
  if (!has_weights_ || least() < step || (rules_.in_lockstep() && complete_ != step))
    throw Corrupt(fmt::format("an image of a block is not at step {}", step));
  for (WorkerState& worker_state : workers_) {
    worker_state = {};
    worker_state.applied = worker_state.clock = step;
  }
}

}  // namespace syncopate::server
