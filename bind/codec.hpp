// A codec whose rounds a Python generator yields: an entry of a catalogue, and the objects that keep it alive.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "bind.hpp"
#include "syncopate/catalogue.hpp"
#include "syncopate/codec.hpp"

namespace syncopate::bind {

/// A number of a codec's parameter, with its default value.
struct CodecParameter {
  std::string name;
  double usual = 0, above = 0, most = 0;
  bool whole = false, or_zero = false;
};

/// The Python functions of a codec. `wire_bytes` and `kept` may be None.
struct CodecFunctions {
  nb::object rounds, wire_bytes, kept;
};

/// The descriptor's functions find the Python functions through `Settings::codec`. Its address is its identity in a
/// catalogue, so it is not copied. Created and destroyed with the GIL.
class PythonCodec final : public compress::Codec {
 public:
  /// Throws Misuse for a way of combining or a use of feedback that does not exist.
  PythonCodec(std::string own_name, CodecFunctions functions, const std::vector<std::string>& combines,
              std::vector<CodecParameter> numbers, const std::string& feedback);
  PythonCodec(const PythonCodec&) = delete;
  PythonCodec& operator=(const PythonCodec&) = delete;

  [[nodiscard]] static const PythonCodec& of(const compress::Settings& settings) {
    return static_cast<const PythonCodec&>(*settings.codec);
  }
  [[nodiscard]] const CodecFunctions& functions() const noexcept { return functions_; }
  [[nodiscard]] const std::string& own_name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<CodecParameter>& numbers() const noexcept { return numbers_; }
  [[nodiscard]] std::string who() const { return "codec " + name_; }

 private:
  std::string name_, usual_;
  CodecFunctions functions_;
  std::vector<CodecParameter> numbers_;
  std::vector<Parameter> limits_;
};

/// For Codec::coder of a PythonCodec: a conversation in which its generator yields the rounds.
[[nodiscard]] std::unique_ptr<compress::Coder> python_coder(const compress::Settings& settings);

/// The argument `codec`: a name with its parameter, or a codec, which then need not be in the catalogue.
using CodecGiven = std::variant<std::string, const PythonCodec*>;

/// The codec and the catalogue that a call was given.
struct CodecChosen {
  std::string codec;
  Catalogue catalogue;
  std::vector<nb::object> entries;  ///< the catalogue refers to them
};
[[nodiscard]] CodecChosen chosen(const CodecGiven& codec, const std::vector<const PythonCodec*>& catalogue);

}  // namespace syncopate::bind
