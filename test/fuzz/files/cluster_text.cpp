// Rank 0's cluster file on its way to the other ranks.
#include "collective/group/costs.hpp"
#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void cluster_text(Input input) {
  may_refuse<Corrupt, Misuse, SystemFailure>([&] {
    const auto found = collective::group::decode_cluster_text(text_of(input));
    const auto again = collective::group::decode_cluster_text(encode(found));
    hold(again.file == found.file && again.text == found.text, "what was taken travels unchanged");
    std::ignore = cluster_of(found);
  });
}

}  // namespace syncopate::fuzz::target
