// Headers of checkpoints: JSON whose numbers decide how much is read, and what a run goes on with.
#include "record/checkpoint_header.hpp"

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void checkpoint_header(Input input) {
  Fields fields(input);
  const auto numbers = fields.take<std::uint8_t>();
  may_refuse<Corrupt>([&] {
    const auto header = train::parse_checkpoint_header(text_of(fields.rest()), 4 * std::uint64_t{numbers});
    hold(header.parameters * (1 + header.kept.size()) + header.buffers == numbers, "every number has its place");
    hold(header.state.sizes.layers >= 0 && header.state.sizes.context >= 0, "sizes count something");
    const std::string text = train::text_of(header);
    hold(train::text_of(train::parse_checkpoint_header(text, 4 * std::uint64_t{numbers})) == text,
         "what is written is read alike");
  });
}

}  // namespace syncopate::fuzz::target
