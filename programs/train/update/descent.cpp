// A descent begins with the optimizer's earlier state; every updating rank gets it from rank 0.
#include "update/descent.hpp"

#include "require.hpp"
#include "update/optimizer.hpp"
#include "update/shards.hpp"

namespace syncopate::train {

namespace {

/// State passed between the parts of a recipe always has the same rule; a different rule comes from a checkpoint.
void require_same_rule(const Kept& kept, const Options& o) {
  const std::string rule = optimizer_options(o).rule;
  require(kept.optimizer == rule,
          "{} was trained with {}, and this run has {}; give the same optimizer, or leave --resume out", o.resume,
          words_of_rule(kept.optimizer), words_of_rule(rule));
}

}  // namespace

Descent::Descent(const Run& run, const Network& network, const Options& options, const ExchangePlan& plan,
                 const Earlier& earlier, std::unique_ptr<ServedWeights> served)
    : run_(run),
      plan_(plan),
      updater_(options.is_served() ? std::nullopt : std::optional(updater_of(options.sync.exchange))),
      serial_(options.serial) {
  OptimizerOptions work = optimizer_options(options);
  work.corrected = plan.corrected;
  const bool is_sharded = updater_ == Updater::shards;
  if (is_sharded || options.share_norms) work.shared = shared_update(run.group, network, is_sharded);
  if (is_sharded) shards_ = work.shared->shards;
  optimizer_ = optimizer_for(network, std::move(work));
  if (earlier.kept && !earlier.kept->optimizer.empty()) require_same_rule(*earlier.kept, options);
  if (earlier.kept && updater_) take(*earlier.kept);
  SynchronizerOptions exchange = plan.options;
  if (updater_ != Updater::caller)
    exchange.update = [this](std::size_t first, std::size_t last) { update(first, last); };
  if (!updater_ && !served) served = serve(network, options, plan.options.coding, earlier);
  gradients_ = std::make_unique<Gradients>(
      run.group, network, std::move(exchange),
      Gradients::Mode{options.serial, options.share_norms, std::move(served), plan.codecs.by_gradient()});
}

Descent::~Descent() = default;

/// A rank that never updates needs no state.
void Descent::take(const Kept& earlier) {
  if (shards_) return scatter(run_.group, *shards_, earlier, *optimizer_);
  if (run_.place.rank == 0) restore(*optimizer_, earlier);
  if (updater_ == Updater::root) return;
  std::vector<Buffer> state;
  for (const OptimizerState& kept : optimizer_->state()) state.emplace_back(kept.values);
  if (!state.empty()) broadcast_all(run_.group, state);
}

void Descent::begin_step(const UpdateStep& at) {
  step_ = at;
  gradients_->use_rate(at.rate);
}

/// Runs on the communication thread if the exchange ends in weights, else on the training thread.
void Descent::update(std::size_t first, std::size_t last) {
  std::vector<std::span<float>> gradients;
  for (std::size_t i = first; i <= last; ++i) gradients.push_back(gradients_->values(i));
  optimizer_->update(first, gradients, step_);
}

Kept Descent::kept(at::Tensor& parameters) {
  if (ServedWeights* served = gradients_->served()) {
    if (run_.place.rank != 0) return served->flush(), Kept{std::string(optimizer_->rule()), {}};
    parameters = at::empty_like(parameters);
    return served->gather(parameters);
  }
  if (shards_) return gathered(run_.group, *shards_, *optimizer_);
  if (updater_ == Updater::root && run_.place.rank != 0) return {std::string(optimizer_->rule()), {}};
  return kept_by(*optimizer_);
}

}  // namespace syncopate::train
