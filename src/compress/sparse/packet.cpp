// Packet: header, indices, values.
#include "compress/sparse/packet.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "compress/sparse/bits.hpp"
#include "compress/sparse/index_coding.hpp"
#include "kernel/quantize.hpp"
#include "syncopate/error.hpp"

namespace syncopate::compress::sparse {

namespace {

constexpr std::size_t kMostVarint = 10;  ///< bytes
constexpr std::size_t kMostHeader = 2 + 2 * kMostVarint;

[[noreturn]] void refuse(const char* what) { throw Corrupt(std::string("a sparse packet: ") + what); }

std::byte* put_varint(std::byte* into, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *into++ = std::byte((value & 0x7f) | 0x80);
  *into++ = std::byte(value);
  return into;
}

std::uint64_t take_varint(base::ConstBytes& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 63; shift += 7) {
    if (from.empty()) refuse("it ends in its header");
    const auto byte = std::to_integer<std::uint64_t>(from.front());
    from = from.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse("a number in its header has no end");
}

bool is_quantised(const ValueCoding& coding) { return coding.bits <= 8; }

std::size_t value_bytes(const ValueCoding& coding, std::size_t count) {
  if (count == 0) return 0;
  const std::size_t bytes = bytes_of_bits(std::uint64_t{count} * coding.bits);
  return is_quantised(coding) ? sizeof(float) + bytes : bytes;
}

std::uint32_t highest_level(const ValueCoding& coding) { return coding.bits == 1 ? 1 : (1U << (coding.bits - 1)) - 1; }

/// The value of one level; NaN if a value is not finite.
float unit_of(const ValueCoding& coding, std::span<const float> values) {
  double sum = 0;
  float most = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    sum += std::fabs(value);
    most = std::max(most, std::fabs(value));
  }
  if (coding.scale > 0) return coding.scale;
  if (coding.bits == 1) return static_cast<float>(sum / static_cast<double>(values.size()));
  const std::uint32_t highest = highest_level(coding);
  return std::min(most / static_cast<float>(highest), kernel::largest_unit(highest));
}

float dequantised(std::uint64_t field, const ValueCoding& coding, float unit) {
  const bool negative = (field & 1) != 0;
  const auto level = static_cast<float>(coding.bits == 1 ? 1 : field >> 1);
  return negative ? -level * unit : level * unit;
}

void write_quantised(const ValueCoding& coding, std::span<float> values, base::Bytes into) {
  const float unit = unit_of(coding, values);
  std::memcpy(into.data(), &unit, sizeof unit);
  BitWriter writer(into.subspan(sizeof unit));
  const auto highest = static_cast<float>(highest_level(coding));
  for (float& value : values) {
    const float steps = unit > 0 ? std::min(std::nearbyint(std::fabs(value) / unit), highest) : 0;
    const std::uint64_t sign = std::signbit(value) ? 1 : 0;
    const std::uint64_t field = coding.bits == 1 ? sign : static_cast<std::uint64_t>(steps) << 1 | sign;
    writer.bits(field, coding.bits);
    value = dequantised(field, coding, unit);
  }
  writer.finish();
}

void read_quantised(const ValueCoding& coding, base::ConstBytes from, std::span<float> values) {
  float unit;
  std::memcpy(&unit, from.data(), sizeof unit);
  BitReader reader(from.subspan(sizeof unit));
  for (float& value : values) value = dequantised(reader.bits(coding.bits), coding, unit);
}

void write_values(const ValueCoding& coding, std::span<float> values, base::Bytes into) {
  if (values.empty()) return;
  if (is_quantised(coding)) return write_quantised(coding, values, into);
  std::memcpy(into.data(), values.data(), values.size_bytes());
}

void read_values(const ValueCoding& coding, base::ConstBytes from, std::span<float> values) {
  if (values.empty()) return;
  if (is_quantised(coding)) return read_quantised(coding, from, values);
  std::memcpy(values.data(), from.data(), values.size_bytes());
}

}  // namespace

std::size_t most_indices_bytes(std::size_t selected, std::uint64_t elements) {
  return kMostHeader + most_index_bytes(selected, elements);
}

std::size_t write_indices(std::span<const std::uint32_t> indices, std::uint64_t elements, base::Bytes into) {
  const IndexPlan plan = shortest_coding(indices, elements);
  std::byte* at = into.data();
  *at++ = std::byte(plan.coding);
  *at++ = std::byte(plan.parameter);
  at = put_varint(at, indices.size());
  at = put_varint(at, plan.bytes);
  const auto header = static_cast<std::size_t>(at - into.data());
  encode_indices(plan, indices, elements, into.subspan(header));
  return header + plan.bytes;
}

base::ConstBytes read_indices(std::uint64_t elements, base::ConstBytes from, std::vector<std::uint32_t>& into) {
  if (from.size() < 2) refuse("it ends in its header");
  const auto kind = std::to_integer<std::uint8_t>(from[0]);
  if (kind >= kIndexCodings) refuse("its index coding is unknown");
  IndexPlan plan{static_cast<IndexCoding>(kind), std::to_integer<std::uint8_t>(from[1]), 0};
  from = from.subspan(2);
  const std::uint64_t count = take_varint(from);
  plan.bytes = take_varint(from);
  if (plan.bytes > from.size()) refuse("it is longer than the received bytes");
  decode_indices(plan, {count, elements}, from.first(plan.bytes), into);
  return from.subspan(plan.bytes);
}

std::size_t most_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements) {
  return most_indices_bytes(selected, elements) + value_bytes(coding, selected);
}

double expected_indices_bytes(std::size_t selected, std::uint64_t elements) {
  if (selected == 0 || elements == 0) return 4;
  const double density = static_cast<double>(selected) / static_cast<double>(elements);
  // Golomb-Rice: floor(log2(mean gap * ln 2)) low bits, and about 1.58 bits for the unary part.
  const double gap_bits = std::max(0.0, std::floor(std::log2(std::max(1.0, 0.693 / density)))) + 1.58;
  const double index_bits = density == 1 ? 0 : std::min(gap_bits, 1 / density);
  return 6 + static_cast<double>(selected) * index_bits / 8;
}

double expected_packet_bytes(const ValueCoding& coding, std::size_t selected, std::uint64_t elements) {
  return expected_indices_bytes(selected, elements) + static_cast<double>(value_bytes(coding, selected));
}

std::size_t write_packet(const ValueCoding& coding, Selection& selection, std::uint64_t elements, base::Bytes into) {
  const std::size_t indices = write_indices(selection.indices(), elements, into);
  const std::size_t values = value_bytes(coding, selection.size());
  write_values(coding, selection.values(), into.subspan(indices, values));
  return indices + values;
}

std::size_t index_bytes_of(base::ConstBytes packet) {
  const std::byte* const begin = packet.data();
  packet = packet.subspan(2);
  static_cast<void>(take_varint(packet));
  const std::uint64_t indices = take_varint(packet);
  return static_cast<std::size_t>(packet.data() - begin) + indices;
}

base::ConstBytes read_packet(const ValueCoding& coding, std::uint64_t elements, base::ConstBytes from, Arrival& into) {
  from = read_indices(elements, from, into.indices);
  const std::size_t values = value_bytes(coding, into.indices.size());
  if (values > from.size()) refuse("its values are cut off");
  into.values.resize(into.indices.size());
  read_values(coding, from.first(values), into.values);
  return from.subspan(values);
}

}  // namespace syncopate::compress::sparse
