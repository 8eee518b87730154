// Catalogues of components of Python.
#include "component/catalogue.hpp"

#include <algorithm>

#include "signals.hpp"
#include "syncopate/error.hpp"

namespace syncopate::bind {

template <class T>
void CatalogueChosen::add(const T* entry) {
  if (entry == nullptr) throw Misuse("a component is None; allowed: a name or a component");
  const nb::object object = nb::find(entry);
  const auto is_it = [&](const nb::object& other) { return other.is(object); };
  if (std::ranges::any_of(*entries_, is_it)) return;
  catalogue_ = catalogue_.with(*entry);
  entries_->push_back(object);
}

CatalogueChosen::CatalogueChosen(const CatalogueGiven& given) : entries_(held(std::vector<nb::object>{})) {
  for (const ComponentGiven& one : given) std::visit([this](const auto* entry) { add(entry); }, one);
}

template void CatalogueChosen::add(const PythonCodec* entry);
template void CatalogueChosen::add(const PythonPlacement* entry);
template void CatalogueChosen::add(const PythonConsistency* entry);
template void CatalogueChosen::add(const PythonStorage* entry);
template void CatalogueChosen::add(const PythonPolicy* entry);
template void CatalogueChosen::add(const PythonRule* entry);

}  // namespace syncopate::bind
