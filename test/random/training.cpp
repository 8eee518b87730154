// Training: steps of a drawn synchronizer, with every order of ready and wait that it allows.
#include "random/training.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "compress/codec.hpp"
#include "random/averages.hpp"
#include "schedule/policy.hpp"
#include "sync/exchange.hpp"
#include "syncopate/error.hpp"

namespace syncopate::test {

namespace {

DType draw_type(Draw& draw, const Training& training) {
  const bool is_plain = training.options.coding.codec == "none" && !training.ends_in_weights;
  if (!is_plain) return DType::f32;
  const bool takes_integers = training.options.exchange != "hierarchical" && training.options.clip_norm == 0;
  return draw.chance(50) ? DType::f32 : kDTypes[draw.below(takes_integers ? std::size(kDTypes) : 4)];
}

bool fits(const Training& training) {
  const compress::Settings codec = compress::settings_of(training.options.coding.codec);
  try {
    sync::require_fit(sync::exchange_named(training.options.exchange), *codec.codec, training.options.algorithm);
  } catch (const Misuse&) {
    return false;
  }
  return codec.codec->takes(DType::f32);
}

void draw_names(Draw& draw, Training& training) {
  training.options.exchange = draw.pick(sync::exchanges())->name;
  const compress::Codec& codec = *draw.pick(compress::codecs());
  // Exact selections send every element as it is at density 1.
  const bool may_be_whole = codec.has_density && codec.name != "sparse_quantised" && codec.name != "dgc";
  training.is_sparse = codec.feedback != compress::FeedbackUse::pointless;
  training.is_lossy = training.is_sparse && !(may_be_whole && draw.chance(50));
  training.options.coding.codec = fmt::format("{}{}", codec.name, training.is_sparse && !training.is_lossy ? ":1" : "");
  training.options.algorithm = draw.pick(std::array{"auto", "ring", "recursive_doubling", "double_binary_tree"});
  training.ends_in_weights = updater_of(training.options.exchange) != Updater::caller;
}

}  // namespace

Training draw_training(Draw& draw, int ranks) {
  Training training{.seed = draw.word(), .ranks = ranks};
  do draw_names(draw, training);
  while (!fits(training));
  SynchronizerOptions& options = training.options;
  options.policy = draw.pick(schedule::policies())->name;
  options.fusion_bytes = draw.chance(50) ? draw.below(20'000) : 0;
  options.check_every = static_cast<int>(draw.below(4));
  options.zero_missing = draw.chance(30);
  options.broadcast_every = 1 + static_cast<int>(draw.below(3));
  if (draw.chance(20)) options.clip_norm = 0.5 + static_cast<double>(draw.below(2000));
  training.steps = draw.chance(20) ? 14 : 4;
  for (std::size_t i = 0, layers = 1 + draw.below(8); i < layers; ++i) {
    const std::size_t rows = draw.chance(30) ? 1 + draw.below(6) : 0;
    const std::size_t elements = (1 + draw.below(draw.chance(30) ? 9000 : 60)) * std::max<std::size_t>(rows, 1);
    training.model.push_back({fmt::format("layer {}", i), elements, draw_type(draw, training), rows});
  }
  return training;
}

std::string text_of(const Training& training) {
  const SynchronizerOptions& options = training.options;
  return fmt::format("{} ranks, {} gradients, {} steps, exchange {}, codec {}, policy {}, algorithm {}, clip {}, {}",
                     training.ranks, training.model.size(), training.steps, options.exchange, options.coding.codec,
                     options.policy, options.algorithm, options.clip_norm, options.zero_missing ? "gaps" : "no gaps");
}

namespace {

/// One rank.
class Trainee final {
 public:
  Trainee(Group& group, const Training& training, const Ledger& ledger)
      : group_(group),
        training_(training),
        ledger_(ledger),
        averages_(training, group.rank()),
        mine_(training.seed + 5 + static_cast<std::uint64_t>(group.rank())) {
    SynchronizerOptions options = training.options;
    for (const Gradient& gradient : training.model) weights_.emplace_back(gradient.elements, 1.0F);
    if (training.ends_in_weights || compress::settings_of(options.coding.codec).codec->wants_weights)
      for (auto& layer : weights_) options.weights.emplace_back(std::span(layer));
    if (training.ends_in_weights) {
      options.update = [this](std::size_t first, std::size_t last) { update(first, last); };
    }
    synchronizer_.emplace(group, training.model, options);
  }

  void step(int number) {
    const Backward backward{training_.seed, number};
    for (int micro_batch = 0; micro_batch < backward.micro_batches(); ++micro_batch) {
      const bool is_last = micro_batch + 1 == backward.micro_batches();
      if (backward.micro_batches() > 1) synchronizer_->accumulate(!is_last);
      pass(backward, micro_batch, is_last);
    }
    wait();
    averages_.take(backward);
    for (std::size_t i = 0; i < training_.model.size(); ++i) check(number, i);
  }

 private:
  void update(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) {
      auto* gradient = static_cast<float*>(synchronizer_->gradient(i).data);
      for (float& weight : weights_[i]) weight -= kRate * std::exchange(*gradient++, 0.0F);
    }
  }
  /// Layers become ready in any order, half of them from another thread.
  void pass(const Backward& backward, int micro_batch, bool is_last) {
    std::vector<std::size_t> order(training_.model.size());
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    if (mine_.chance(70)) mine_.shuffle(order);
    const bool may_miss = training_.options.zero_missing && is_last;
    const auto some = [&](std::size_t first, std::size_t stride) {
      for (std::size_t at = first; at < order.size(); at += stride) {
        const std::size_t i = order[at];
        const Inputs inputs = backward.inputs(training_.model[i], i, micro_batch);
        (micro_batch > 0 ? add : fill)(synchronizer_->gradient(i), inputs, group_.rank());
        if (!may_miss || !backward.misses(i, group_.rank())) synchronizer_->ready(i);
      }
    };
    if (!mine_.chance(40)) return some(0, 1);
    const std::jthread other([&] { some(1, 2); });
    some(0, 2);
  }
  void wait() {
    const std::size_t how = mine_.below(3);
    if (how == 1) {
      std::vector<std::size_t> order(training_.model.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      if (!training_.options.zero_missing) mine_.shuffle(order);
      for (const std::size_t i : order) synchronizer_->wait(i);
    } else if (how == 2 && !training_.ends_in_weights && !training_.options.zero_missing) {
      while (synchronizer_->next_bucket()) {
      }
    }
    synchronizer_->wait();
  }
  void check(int number, std::size_t i) {
    const Buffer result = training_.ends_in_weights ? Buffer(std::span(weights_[i])) : synchronizer_->gradient(i);
    const std::string flaw = training_.is_lossy ? "" : averages_.flaw_in(result, i);
    if (!flaw.empty())
      throw WrongValue(
          fmt::format("rank {}, step {}, layer {}: {} ({})", group_.rank(), number, i, flaw, text_of(training_)));
    if (training_.options.exchange == "none") return;
    const auto bytes = result.bytes();
    ledger_(fmt::format("step {}, layer {} ({})", number, i, text_of(training_)),
            std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }

  Group& group_;
  const Training& training_;
  const Ledger& ledger_;
  Averages averages_;
  Draw mine_;
  std::vector<std::vector<float>> weights_;
  std::optional<Synchronizer> synchronizer_;
};

}  // namespace

void train(Group& group, const Training& training, const Ledger& ledger) {
  Trainee trainee(group, training, ledger);
  for (int number = 0; number < training.steps; ++number) trainee.step(number);
}

}  // namespace syncopate::test
