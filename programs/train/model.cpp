// Looks up a model by its name.
#include "model.hpp"

#include <vector>

#include "require.hpp"
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

void require_side(const Model& model, int side, int resolution) {
  require(resolution == 0 || model.input == DataKind::images, "--resolution {} with model {}, which reads text",
          resolution, model.name);
  if (model.input == DataKind::text) return;
  require(side >= model.least_side && (model.most_side == 0 || side <= model.most_side),
          "model {} takes images of {}{} pixels each way{}, and these have {}: give {} resolution", model.name,
          model.least_side, model.most_side == 0 ? "" : fmt::format(" to {}", model.most_side),
          model.most_side == 0 ? " and more" : "", side, resolution > 0 ? "another" : "a");
}

}  // namespace syncopate::train
