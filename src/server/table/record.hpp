// Record: one change of a server's tables, as its replica repeats it.
#pragma once

#include <cstdint>

#include "server/message.hpp"

namespace syncopate::server {

enum class Event : std::uint8_t {
  setup = 1,  ///< message.body: the job's setup. Begins a transfer: an image of every block follows
  image,      ///< message.body: ServerBlock::image of message.block
  initial,    ///< ServerBlock::initialise
  push,       ///< ServerBlock::take
  leave,
  come_back,
  join,  ///< from step message.first
  show,  ///< ServerBlock::show: the next version of what workers are shown
};

/// A block is deterministic: the same records in the same order make the same bits.
struct Record {
  std::uint64_t sequence = 0;  ///< of the server: counts its records from 1
  Event event = Event::setup;
  std::size_t worker = 0;
  Message message{};
};

}  // namespace syncopate::server
