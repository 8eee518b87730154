// PythonSource: a source of records whose bytes a Python function returns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bind.hpp"
#include "syncopate/input.hpp"

namespace syncopate::bind {

/// Used on any thread, without the GIL.
class PythonSource final : public input::Source {
 public:
  /// `read(record)` returns an object with the buffer protocol of bytes[record] bytes. With the GIL.
  PythonSource(nb::callable read, std::vector<std::uint32_t> bytes, std::uint64_t version);

  [[nodiscard]] std::size_t records() const noexcept override { return bytes_.size(); }
  [[nodiscard]] std::size_t bytes(std::size_t record) const override { return bytes_.at(record); }
  [[nodiscard]] std::int64_t label(std::size_t /*record*/) const override { return 0; }
  [[nodiscard]] std::string name(std::size_t record) const override { return "record " + std::to_string(record); }
  [[nodiscard]] std::uint64_t version() const noexcept override { return version_; }
  /// Throws Thrown (what the function raised), Corrupt (another length), Misuse (not a buffer).
  void read(std::size_t record, std::span<std::byte> into) const override;

 private:
  std::shared_ptr<nb::callable> read_;
  std::vector<std::uint32_t> bytes_;
  std::uint64_t version_;
};

/// The Python object: the source, or the source behind a limited rate.
struct SharedSource {
  std::shared_ptr<const input::Source> source;
};

}  // namespace syncopate::bind
