// The argument `catalogue` of Python, and the arguments that take a component or its name.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "bind.hpp"
#include "codec.hpp"
#include "component/consistency.hpp"
#include "component/placement.hpp"
#include "component/policy.hpp"
#include "component/rule.hpp"
#include "component/storage.hpp"
#include "syncopate/catalogue.hpp"

namespace syncopate::bind {

/// A component of any kind.
using ComponentGiven = std::variant<const PythonCodec*, const PythonPlacement*, const PythonConsistency*,
                                    const PythonStorage*, const PythonPolicy*, const PythonRule*>;
using CatalogueGiven = std::vector<ComponentGiven>;

/// A name with its parameter, or a component, which then need not be in the catalogue.
template <class T>
using Given = std::variant<std::string, const T*>;

/// The catalogue of a call. Used with the GIL.
class CatalogueChosen final {
 public:
  /// Throws Misuse for two components of a kind with the same name.
  explicit CatalogueChosen(const CatalogueGiven& given);

  /// The name of what was given, which is in the catalogue afterwards if it is a component.
  template <class T>
  [[nodiscard]] std::string name(const Given<T>& given) {
    if (const auto* const text = std::get_if<std::string>(&given)) return *text;
    const T* const own = std::get<const T*>(given);
    add(own);
    return own->own_name();
  }

  [[nodiscard]] const Catalogue& catalogue() const noexcept { return catalogue_; }
  /// The objects that the catalogue refers to. Released with the GIL.
  [[nodiscard]] const std::shared_ptr<std::vector<nb::object>>& entries() const noexcept { return entries_; }

 private:
  template <class T>
  void add(const T* entry);

  Catalogue catalogue_;
  std::shared_ptr<std::vector<nb::object>> entries_;
};

}  // namespace syncopate::bind
