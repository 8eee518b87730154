// JSON: values by key, with errors that name the file, the place and what is allowed there.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace syncopate::base {

/// A value of a JSON document that knows where it stands. Everything throws Misuse.
class JsonPlace final {
 public:
  JsonPlace(const nlohmann::json& value, std::string place) : value_(value), place_(std::move(place)) {}

  [[nodiscard]] bool has(const char* key) const { return value_.contains(key); }
  [[nodiscard]] bool is_object() const { return value_.is_object(); }
  [[nodiscard]] std::size_t size() const;  ///< of an array
  [[nodiscard]] JsonPlace at(const char* key) const;
  [[nodiscard]] JsonPlace at(std::size_t index) const;
  /// Every key of an object with its value.
  [[nodiscard]] std::vector<std::pair<std::string, JsonPlace>> items() const;

  /// Throws Misuse for a key that is nearly one of these: it would go unread. Other keys are their writer's notes.
  void refuse_misspelt(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] double amount() const;                           ///< a finite number >= 0
  [[nodiscard]] std::uint64_t count(std::uint64_t least) const;  ///< a whole number >= least
  [[nodiscard]] double amount_or(const char* key, double otherwise) const {
    return has(key) ? at(key).amount() : otherwise;
  }
  [[noreturn]] void refuse(const std::string& what) const;  ///< Misuse: "<place>: <what>"

 private:
  const nlohmann::json& value_;
  std::string place_;
};

/// The document in `text`; throws Misuse naming `file` and the position of what is no JSON.
[[nodiscard]] nlohmann::json json_of(std::string_view text, const std::string& file);
/// Longer files are refused: nothing that people write down is.
inline constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;
/// The bytes of a file; throws SystemFailure that names it and the reason.
[[nodiscard]] std::string text_of_file(const std::string& file);

}  // namespace syncopate::base
