// Records from a Python function: the GIL is held only while the function runs and its bytes are copied.
#include "cache/source.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "signals.hpp"
#include "syncopate/cache.hpp"
#include "syncopate/error.hpp"
#include "thrown.hpp"

namespace syncopate::bind {

namespace {

using namespace nb::literals;

constexpr const char* kSourceDoc =
    "Records of a Python function for a Cache: record i has `sizes[i]` bytes, which `read(i)` returns as bytes or "
    "another contiguous buffer. `read` is called on several threads. version: a number that changes if the contents "
    "do. bytes_per_second > 0 limits the rate of all reads together, to emulate a network file system.";

/// The memory of an array on the CPU, or of another object with the buffer protocol.
using View = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

View view_of(nb::handle object, std::size_t record) {
  View view;
  if (nb::try_cast(object, view, false) && view.is_valid()) return view;
  throw Misuse(fmt::format("record {}: read returned {}; allowed: bytes, or another contiguous buffer", record,
                           nb::cast<std::string>(nb::repr(object.type()))));
}

std::vector<std::uint32_t> checked_sizes(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::uint32_t> checked;
  checked.reserve(sizes.size());
  for (const std::uint64_t size : sizes) {
    if (size > UINT32_MAX)
      throw Misuse(fmt::format("record {} has {} bytes; allowed: below 4 GiB", checked.size(), size));
    checked.push_back(static_cast<std::uint32_t>(size));
  }
  return checked;
}

/// A throttled source keeps the source that it wraps.
std::shared_ptr<const input::Source> at_rate(std::shared_ptr<const PythonSource> source, double bytes_per_second) {
  if (bytes_per_second == 0) return source;
  std::shared_ptr<const input::Source> limited = cache::throttled(*source, bytes_per_second);
  const auto* const address = limited.get();
  return {address, [source, limited](const input::Source*) {}};
}

nb::bytes record_of(const SharedSource& self, std::size_t record) {
  if (record >= self.source->records())
    throw Misuse(
        fmt::format("record {} of {}; allowed: 0 to {}", record, self.source->records(), self.source->records() - 1));
  std::vector<std::byte> bytes(self.source->bytes(record));
  {
    const nb::gil_scoped_release release;
    self.source->read(record, bytes);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

PythonSource::PythonSource(nb::callable read, std::vector<std::uint32_t> bytes, std::uint64_t version)
    : read_(held(std::move(read))), bytes_(std::move(bytes)), version_(version) {}

void PythonSource::read(std::size_t record, std::span<std::byte> into) const {
  with_gil(name(record), [&] {
    const nb::object returned = (*read_)(record);
    const View view = view_of(returned, record);
    if (view.nbytes() != into.size())
      throw Corrupt(fmt::format("record {} has {} bytes, and its size was {}", record, view.nbytes(), into.size()));
    if (!into.empty()) std::memcpy(into.data(), view.data(), into.size());
  });
}

void bind_source(nb::module_& module) {
  nb::class_<SharedSource>(module, "Source", kSourceDoc)
      .def(
          "__init__",
          [](SharedSource* self, const nb::callable& read, const std::vector<std::uint64_t>& sizes,
             std::uint64_t version, double bytes_per_second) {
            new (self) SharedSource{
                at_rate(std::make_shared<PythonSource>(read, checked_sizes(sizes), version), bytes_per_second)};
          },
          "read"_a, "sizes"_a, nb::kw_only(), "version"_a = 0, "bytes_per_second"_a = 0.0)
      .def("read", record_of, "record"_a, "The bytes of a record, read now.")
      .def("__len__", [](const SharedSource& self) { return self.source->records(); });
}

}  // namespace syncopate::bind
