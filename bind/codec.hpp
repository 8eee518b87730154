// A codec whose rounds a Python generator yields: an entry of a catalogue, and the objects that keep it alive.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bind.hpp"
#include "component/component.hpp"
#include "component/parameter.hpp"
#include "syncopate/codec.hpp"

namespace syncopate::bind {

/// The Python functions of a codec. Those other than `rounds` may be None.
struct CodecFunctions {
  nb::object rounds, wire_bytes, kept, decode;
};

/// The descriptor's functions find the Python functions through `Settings::codec`.
class PythonCodec final : public compress::Codec, public Component {
 public:
  /// Throws Misuse for a way of combining or a use of feedback that does not exist.
  PythonCodec(std::string own_name, CodecFunctions functions, const std::vector<std::string>& combines,
              std::vector<ComponentParameter> numbers, const std::string& feedback);

  [[nodiscard]] static const PythonCodec& of(const compress::Settings& settings) {
    return static_cast<const PythonCodec&>(*settings.codec);
  }
  [[nodiscard]] const nb::object& rounds_function() const noexcept { return functions()[0]; }
  [[nodiscard]] const nb::object& wire_bytes_function() const noexcept { return functions()[1]; }
  [[nodiscard]] const nb::object& kept_function() const noexcept { return functions()[2]; }
  [[nodiscard]] const nb::object& decode_function() const noexcept { return functions()[3]; }
  [[nodiscard]] const ParameterList& numbers() const noexcept { return numbers_; }

 private:
  ParameterList numbers_;
};

/// For Codec::coder of a PythonCodec: a conversation in which its generator yields the rounds.
[[nodiscard]] std::unique_ptr<compress::Coder> python_coder(const compress::Settings& settings);

}  // namespace syncopate::bind
