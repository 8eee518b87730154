// Blocks of coded 16-bit values: noise, and what values became with a few bytes changed.
#include <algorithm>
#include <vector>

#include "compress/lossless/block.hpp"
#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

namespace {

using namespace compress::lossless;

std::vector<std::byte> block_of(const std::vector<std::uint16_t>& values) {
  std::vector<std::byte> block(most_block_bytes(values.size()));
  block.resize(write_block(values, block));
  std::vector<std::uint16_t> back(values.size());
  hold(read_block(block, back).empty(), "a block is read to its end");
  hold(back == values, "values arrive as they left");
  return block;
}

}  // namespace

void lossless(Input input) {
  Fields fields(input);
  const bool is_noise = fields.take<std::uint8_t>() % 2 == 0;
  const std::size_t count = fields.take<std::uint16_t>() % 3000;
  const auto changes = fields.take<std::uint8_t>() % 4;
  std::vector<std::byte> bytes;
  if (!is_noise) {
    std::vector<std::uint16_t> values(count);
    for (std::uint16_t& value : values) value = fields.take<std::uint16_t>();
    bytes = block_of(values);
    for (int i = 0; i < changes && !bytes.empty(); ++i)
      bytes[fields.take<std::uint16_t>() % bytes.size()] ^= std::byte{fields.take<std::uint8_t>()};
  } else {
    const Input rest = fields.rest();
    bytes.assign(rest.begin(), rest.end());
  }
  std::vector<std::uint16_t> into(count);
  may_refuse<Corrupt>([&] { hold(read_block(bytes, into).size() <= bytes.size(), "only bytes that came are read"); });
}

}  // namespace syncopate::fuzz::target
