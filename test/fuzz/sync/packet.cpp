// Packets of sparse codecs: noise, and what a selection became with a few bytes changed.
#include "compress/sparse/packet.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

using namespace compress::sparse;

std::vector<std::byte> packet_of(const ValueCoding& coding, std::uint64_t elements, Fields& fields) {
  std::vector<float> values(elements);
  for (float& value : values) value = static_cast<float>(fields.take<std::int8_t>());
  Selection selection;
  std::uint32_t index = 0;
  for (auto left = fields.take<std::uint8_t>(); left > 0 && index < elements; --left) {
    selection.add(index, values[index]);
    index += 1 + fields.take<std::uint8_t>() % 64;
  }
  std::vector<std::byte> packet(most_packet_bytes(coding, selection.size(), elements));
  packet.resize(write_packet(coding, selection, elements, packet));
  Arrival back;
  hold(read_packet(coding, elements, packet, back).empty(), "a packet is read to its end");
  hold(std::ranges::equal(back.indices, selection.indices()), "indices arrive as they left");
  return packet;
}

}  // namespace

void packet(Input input) {
  Fields fields(input);
  const ValueCoding coding{.bits = std::array{1U, 2U, 4U, 8U, 6U, 32U}[fields.take<std::uint8_t>() % 6]};
  const std::uint64_t elements = 1 + fields.take<std::uint16_t>() % 2000;
  const bool is_noise = fields.take<std::uint8_t>() % 2 == 0;
  std::vector<std::byte> bytes;
  if (!is_noise) bytes = packet_of(coding, elements, fields);
  for (auto changes = fields.take<std::uint8_t>() % 4; changes > 0 && !bytes.empty(); --changes)
    bytes[fields.take<std::uint16_t>() % bytes.size()] ^= std::byte{fields.take<std::uint8_t>()};
  const Input rest = fields.rest();
  if (is_noise) bytes.assign(rest.begin(), rest.end());
  may_refuse<Corrupt>([&] {
    Arrival arrival;
    std::ignore = read_packet(coding, elements, bytes, arrival);
    hold(arrival.indices.size() == arrival.values.size(), "every index has a value");
    for (std::size_t i = 0; i < arrival.indices.size(); ++i)
      hold(arrival.indices[i] < elements && (i == 0 || arrival.indices[i - 1] < arrival.indices[i]),
           "indices ascend and lie within the tensor");
  });
}

}  // namespace syncopate::fuzz::target
