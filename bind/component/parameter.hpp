// The class Parameter of the Python package: a number in the text after the colon of a component's name.
#pragma once

#include <string>
#include <vector>

#include "bind.hpp"
#include "syncopate/parameter.hpp"

namespace syncopate::bind {

/// A number with its default value.
struct ComponentParameter {
  std::string name;
  double usual = 0, above = 0, most = 0;
  bool whole = false, or_zero = false;
};

/// The numbers of one component, as its descriptor refers to them.
class ParameterList final {
 public:
  explicit ParameterList(std::vector<ComponentParameter> given);
  ParameterList(const ParameterList&) = delete;
  ParameterList& operator=(const ParameterList&) = delete;

  [[nodiscard]] const std::vector<ComponentParameter>& given() const noexcept { return given_; }
  [[nodiscard]] const std::string& usual() const noexcept { return usual_; }  ///< "0.01,4"
  [[nodiscard]] const std::vector<Parameter>& limits() const noexcept { return limits_; }

 private:
  std::vector<ComponentParameter> given_;
  std::string usual_;
  std::vector<Parameter> limits_;
};

}  // namespace syncopate::bind
