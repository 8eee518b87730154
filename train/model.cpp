// Finding a model by its name.
#include "model.hpp"

#include <vector>

#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"

namespace syncopate::train {

const Model& model_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Model* model : models()) {
    if (model->name == name) return *model;
    known.push_back(model->name);
  }
  throw Misuse(unknown_name("model", name, known));
}

}  // namespace syncopate::train
