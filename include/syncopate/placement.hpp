// Placement: assigns the parts of a parameter server's tables to servers.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "syncopate/hook.hpp"

namespace syncopate::server {

/// The tables to place, in the order of their creation: the forward order of their layers.
struct Demand {
  std::span<const std::size_t> table_bytes;  ///< each a multiple of grain_bytes; a table of 0 bytes gets no shard
  std::size_t servers = 1;                   ///< at least 1
  std::size_t grain_bytes = 4;               ///< a table is divided only at multiples of it; at least 1
};

/// The bytes [begin, end) of a table, which one server keeps.
struct Shard {
  std::size_t table = 0, begin = 0, end = 0;
  std::size_t server = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// An entry of a catalogue; `summary` and `source` are for people.
struct Placement {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  /// Shards by table, then by range: each byte in exactly one, none empty. Pure: every process computes the same.
  Hook<std::vector<Shard>(const Demand& demand)> place;
  /// The law: no server keeps more bytes than this, whatever the tables.
  Hook<double(const Demand& demand)> most_bytes;
};

}  // namespace syncopate::server
