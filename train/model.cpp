// Finding a model by its name.
#include "model.hpp"

#include "require.hpp"

namespace syncopate::train {

const Model& model_named(std::string_view name) {
  std::string known;
  for (const Model* model : models()) {
    if (model->name == name) return *model;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", model->name);
  }
  throw Misuse(fmt::format("there is no model '{}': the models are {}", name, known));
}

}  // namespace syncopate::train
