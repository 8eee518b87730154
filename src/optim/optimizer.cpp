// The optimizer: a rule, its state for a list of parameters, and the pieces in which large tensors are updated.
#include "syncopate/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/require.hpp"
#include "optim/norms.hpp"
#include "optim/rule.hpp"

namespace syncopate {

using namespace optim;

namespace {

/// Elements that one call of a ParallelFor's body updates: whole blocks, large enough to be worth another thread.
constexpr std::size_t kPiece = 16 * kBlock;

void in_turn(std::size_t count, const std::function<void(std::size_t)>& body) {
  for (std::size_t i = 0; i < count; ++i) body(i);
}

Hyperparameters allowed(const OptimizerOptions& options) {
  const Rule& rule = rule_named(options.rule, options.catalogue);
  base::require(!options.corrected || rule.takes_corrected,
                "optimizer {} with feedback momentum: it cannot use gradients that already contain momentum; allowed: "
                "momentum, nesterov",
                rule.name);
  return hyperparameters_of(rule, options.hyperparameters);
}

void require_usable(std::span<const WeightTensor> tensors) {
  std::set<std::string_view> names;
  for (const auto& [name, weights, spared] : tensors) {
    base::require(names.insert(name).second, "two tensors are named '{}'; allowed: unique names", name);
    base::require(weights.dtype == DType::f32, "the weights of '{}' are of type {}; allowed: f32", name,
                  name_of(weights.dtype));
    base::require(weights.data != nullptr && weights.count > 0, "'{}' has no weights; allowed: 1 and more", name);
  }
}

}  // namespace

void require_allowed(const OptimizerOptions& options) { static_cast<void>(allowed(options)); }

bool is_layer_wise(std::string_view rule, const Catalogue& catalogue) {
  return rule_named(rule, catalogue).trust != nullptr;
}

class Optimizer::Impl {
 public:
  Impl(std::vector<WeightTensor> tensors, const OptimizerOptions& options)
      : rule_(rule_named(options.rule, options.catalogue)),
        with_(allowed(options)),
        corrected_(options.corrected),
        parallel_(options.parallel ? options.parallel : in_turn),
        shared_(options.shared),
        tensors_(std::move(tensors)) {
    require_usable(tensors_);
    if (shared_) require_fits(*shared_, rule_, tensors_);
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      offsets_.push_back(elements_);
      elements_ += updated(i).size();
    }
  }

  void update(std::size_t first, std::span<const std::span<float>> gradients, const UpdateStep& at) {
    base::require(std::isfinite(at.rate) && at.rate >= 0, "a learning rate of {}; allowed: 0 or more", at.rate);
    base::require(at.step > 0, "step 0 of an optimizer; allowed: steps counted from 1");
    require_gradients_of(first, gradients);
    std::vector<double> trusts(gradients.size(), 1);
    if (rule_.trust != nullptr) trusts = trusts_of(first, gradients, at);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Step step{with_, at, corrected_, tensors_[first + i].spared, trusts[i]};
      const TensorSlice mine = part_of(first + i, gradients[i]);
      in_pieces(mine.size(), [&](Range piece) { rule_.update(step, mine.cut(piece)); });
    }
  }

  std::vector<OptimizerState> state() {
    allocate();
    std::vector<OptimizerState> result;
    for (std::size_t s = 0; s < rule_.state.size(); ++s) result.push_back({rule_.state[s], state_[s]});
    return result;
  }

  [[nodiscard]] const Rule& rule() const noexcept { return rule_; }

 private:
  void allocate() {
    for (std::size_t s = 0; s < rule_.state.size(); ++s) state_[s].resize(elements_);
  }

  /// The elements of tensor i that this rank updates, and those whose squares it sums.
  [[nodiscard]] Range updated(std::size_t i) const {
    return shared_ && shared_->own_shards_only ? summed(i) : Range{0, tensors_[i].weights.count};
  }
  [[nodiscard]] Range summed(std::size_t i) const {
    return shared_ ? shared_->shards.of(i, shared_->rank) : Range{0, tensors_[i].weights.count};
  }

  void require_gradients_of(std::size_t first, std::span<const std::span<float>> gradients) const {
    for (std::size_t i = first; i < first + gradients.size(); ++i) {
      base::require(i < tensors_.size(), "tensor {} of an optimizer of {}", i, tensors_.size());
      const std::size_t elements = gradients[i - first].size();
      base::require(elements == tensors_[i].weights.count, "the gradient of '{}' has {} elements instead of {}",
                    tensors_[i].name, elements, tensors_[i].weights.count);
    }
  }

  /// This rank's part of tensor i.
  TensorSlice part_of(std::size_t i, std::span<float> gradient) {
    allocate();
    const Buffer& weights = tensors_[i].weights;
    const Range mine = updated(i);
    TensorSlice part = TensorSlice{{static_cast<float*>(weights.data), weights.count}, gradient}.cut(mine);
    for (std::size_t s = 0; s < rule_.state.size(); ++s) part.state[s] = state_[s].data() + offsets_[i];
    return part;
  }

  template <class Body>
  void in_pieces(std::size_t elements, const Body& body) const {
    parallel_((elements + kPiece - 1) / kPiece, [&](std::size_t p) {
      body(Range{p * kPiece, std::min(elements, (p + 1) * kPiece)});
    });
  }

  /// The trust ratios of tensors first, first + 1, …, from the squares of all their blocks.
  std::vector<double> trusts_of(std::size_t first, std::span<const std::span<float>> gradients, const UpdateStep& at) {
    std::vector<std::size_t> elements;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      elements.push_back(tensors_[first + i].spared ? 0 : gradients[i].size());
    BlockSquares squares(elements);
    for (std::size_t i = 0; i < gradients.size(); ++i)
      prepare({with_, at, corrected_, tensors_[first + i].spared}, first + i, gradients[i], squares.of(i));
    if (shared_) gather_squares(*shared_, first, squares);
    std::vector<double> trusts;
    for (std::size_t i = 0; i < gradients.size(); ++i)
      trusts.push_back(tensors_[first + i].spared ? 1 : trust_of(rule_, with_, norms_of(squares.of(i))));
    return trusts;
  }

  /// Computes directions block by block, and sums this rank's squares of each block while it is in the cache.
  /// `squares`: of all blocks of the tensor; empty for a spared one.
  void prepare(const Step& step, std::size_t i, std::span<float> gradient, std::span<Squares> squares) {
    const TensorSlice mine = part_of(i, gradient);
    const Range updates = updated(i), sums = step.spared ? Range{} : summed(i);
    const Range visited = rule_.prepare != nullptr ? updates : sums;
    in_pieces(visited.size(), [&](Range piece) {
      for (std::size_t at = visited.begin + piece.begin; at < visited.begin + piece.end; at += kBlock) {
        const std::size_t end = std::min(visited.end, at + kBlock);
        const TensorSlice block = mine.cut({at - updates.begin, end - updates.begin});
        if (rule_.prepare != nullptr) rule_.prepare(step, block);
        if (at >= sums.begin && at < sums.end) squares[at / kBlock] = squares_of(block);
      }
    });
  }

  const Rule& rule_;
  const Hyperparameters with_;
  const bool corrected_;
  const ParallelFor parallel_;
  const std::optional<SharedUpdate> shared_;
  const std::vector<WeightTensor> tensors_;
  std::vector<std::size_t> offsets_;  ///< of each tensor within every state
  std::size_t elements_ = 0;
  std::array<std::vector<float>, kMostStates> state_;  ///< empty until one is needed
};

Optimizer::Optimizer(std::vector<WeightTensor> tensors, const OptimizerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(tensors), options)) {}
Optimizer::~Optimizer() = default;

void Optimizer::update(std::size_t i, std::span<float> gradient, const UpdateStep& at) {
  impl_->update(i, std::span(&gradient, 1), at);
}

void Optimizer::update(std::size_t first, std::span<const std::span<float>> gradients, const UpdateStep& at) {
  impl_->update(first, gradients, at);
}

std::string_view Optimizer::rule() const noexcept { return impl_->rule().name; }

std::vector<OptimizerState> Optimizer::state() { return impl_->state(); }

void Optimizer::restore(std::string_view rule, std::span<const OptimizerState> saved) {
  base::require(rule == this->rule(), "the saved state is of optimizer {}, this one is {}", rule, this->rule());
  const std::vector<OptimizerState> own = state();
  base::require(saved.size() == own.size(), "optimizer {} keeps {} vectors, {} were saved", rule, own.size(),
                saved.size());
  for (std::size_t s = 0; s < own.size(); ++s) {
    base::require(saved[s].name == own[s].name, "the saved state {} is '{}'; optimizer {} expects '{}'", s,
                  saved[s].name, rule, own[s].name);
    base::require(saved[s].values.size() == own[s].values.size(), "the saved '{}' has {} elements instead of {}",
                  own[s].name, saved[s].values.size(), own[s].values.size());
  }
  for (std::size_t s = 0; s < own.size(); ++s) std::ranges::copy(saved[s].values, own[s].values.begin());
}

}  // namespace syncopate
