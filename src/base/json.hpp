// JSON: values by key; errors name the file, the place in it and the allowed values.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace syncopate::base {

/// A value of a JSON document together with its place in the document. Every function throws Misuse.
class JsonPlace final {
 public:
  JsonPlace(const nlohmann::json& value, std::string place) : value_(value), place_(std::move(place)) {}

  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }
  [[nodiscard]] bool is_object() const { return value_.is_object(); }
  [[nodiscard]] std::size_t size() const;  ///< of an array
  [[nodiscard]] JsonPlace at(const char* key) const;
  [[nodiscard]] JsonPlace at(std::size_t index) const;
  /// All keys of an object with their values.
  [[nodiscard]] std::vector<std::pair<std::string, JsonPlace>> items() const;

  /// Throws Misuse for a key that looks like a misspelling of one of these. Any other unknown key is allowed.
  void refuse_misspelt(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] double amount() const;         ///< a finite number >= 0
  [[nodiscard]] std::string argument() const;  ///< a text, number, true or false, as a command line has it
  [[nodiscard]] std::uint64_t count(std::uint64_t least) const;  ///< a whole number >= least
  [[nodiscard]] double amount_or(const char* key, double otherwise) const {
    return has(key) ? at(key).amount() : otherwise;
  }
  [[noreturn]] void refuse(const std::string& what) const;  ///< Misuse: "<place>: <what>"

 private:
  const nlohmann::json& value_;
  std::string place_;
};

/// Parses `text`; throws Misuse that names `file` and the position of a syntax error.
[[nodiscard]] nlohmann::json json_of(std::string_view text, const std::string& file);
/// Largest file that is read; longer ones are refused.
inline constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
/// Reads a file; throws SystemFailure that names it and the reason.
[[nodiscard]] std::string text_of_file(const std::string& file);

}  // namespace syncopate::base
