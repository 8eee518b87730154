// The header of a checkpoint as JSON; every number is checked before it is used.
#include "record/checkpoint_header.hpp"

#include "record/json_number.hpp"

namespace syncopate::train {
namespace {

using Json = nlohmann::ordered_json;

RunState state_of(const Json& header) {
  RunState s;
  s.model = header.at("model").get<std::string>();
  read(header, "layers", s.sizes.layers);
  read(header, "width", s.sizes.width);
  read(header, "heads", s.sizes.heads);
  read(header, "context", s.sizes.context);
  read(header, "seed", s.seed);
  read(header, "training_samples", s.training_samples);
  read(header, "step", s.progress.step);
  read(header, "epoch", s.progress.epoch);
  read(header, "sample", s.progress.sample);
  return s;
}

CheckpointHeader header_of(const Json& json) {
  CheckpointHeader header{.state = state_of(json),
                          .optimizer = json.at("optimizer").get<std::string>(),
                          .kept = json.at("kept").get<std::vector<std::string>>(),
                          .layout = json.at("layout").get<std::vector<std::string>>()};
  read(json, "parameters", header.parameters);
  read(json, "buffers", header.buffers);
  return header;
}

}  // namespace

std::string text_of(const CheckpointHeader& header) {
  const RunState& s = header.state;
  return Json{{"model", s.model},
              {"layers", s.sizes.layers},
              {"width", s.sizes.width},
              {"heads", s.sizes.heads},
              {"context", s.sizes.context},
              {"seed", s.seed},
              {"training_samples", s.training_samples},
              {"step", s.progress.step},
              {"epoch", s.progress.epoch},
              {"sample", s.progress.sample},
              {"parameters", header.parameters},
              {"buffers", header.buffers},
              {"optimizer", header.optimizer},
              {"kept", header.kept},
              {"layout", header.layout}}
      .dump();
}

CheckpointHeader parse_checkpoint_header(std::string_view text, std::uint64_t number_bytes) try {
  const CheckpointHeader header = header_of(Json::parse(text));
  const std::uint64_t held = number_bytes / 4, vectors = 1 + header.kept.size();
  require_intact(header.buffers <= held && (held - header.buffers) / vectors == header.parameters &&
                     (held - header.buffers) % vectors == 0 && number_bytes % 4 == 0,
                 "it holds {} numbers instead of {} x {} + {}", held, vectors, header.parameters, header.buffers);
  return header;
} catch (const nlohmann::json::exception& error) {
  throw Corrupt(error.what());
}

}  // namespace syncopate::train
