// Rank 0's proposal of the job and its plan, compared with this rank's own.
#include "sync/planning/proposal.hpp"

#include "fuzz/target.hpp"
#include "schedule/policy.hpp"

namespace syncopate::fuzz::target {

void proposal(Input input) {
  using namespace sync::planning;
  static const std::vector<Gradient> model{{"conv1", 300}, {"fc1", 5000, DType::f16, 10}};
  static const Proposal own =
      sync::planning::proposal(model, {}, {.planner = {"fusion", false, 32}, .partition = {{1, 1}, {0, 0}}});
  may_refuse<Corrupt>([&] {
    const Proposal theirs = decode_proposal(text_of(input));
    hold(encode(decode_proposal(encode(theirs))) == encode(theirs), "what was taken travels unchanged");
    const auto difference = difference_of(own, theirs, 1);
    hold(difference || theirs.gradients.size() == model.size(), "no difference means the same model");
    const auto& plan = theirs.plan.partition;
    if (schedule::illegal(plan, 2).empty())
      hold(plan.size() == 1 || plan.size() == 2, "a legal plan has each gradient once");
  });
}

}  // namespace syncopate::fuzz::target
