// Gradients in an arena: attached to autograd by hooks, handed to the optimizer bucket by bucket.
#include "gradients.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <cmath>

#include "require.hpp"

namespace syncopate::train {

namespace {

template <class Wait>
double timed(const Wait& wait) {
  const auto begin = std::chrono::steady_clock::now();
  wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

/// Called by autograd when a parameter's gradient has been added to its memory.
class Gradients::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(Gradients& owner, std::size_t index) : owner_(owner), index_(index) {}
  void operator()(const torch::autograd::Variable&) override { owner_.ready(index_); }

 private:
  Gradients& owner_;
  std::size_t index_;
};

Gradients::Gradients(Group& group, const Network& network, const SynchronizerOptions& options)
    : network_(network), options_(options) {
  for (const auto& [name, value] : network.parameters) {
    offsets_.push_back(elements_);
    gradients_.push_back({name, static_cast<std::size_t>(value.numel()), DType::f32});
    elements_ += gradients_.back().elements;
  }
  arrived_.resize(gradients_.size());
  if (options.exchange == "none")
    own_.resize(elements_);
  else
    synchronizer_ = std::make_unique<Synchronizer>(group, gradients_, options);
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    at::Tensor parameter = network.parameters[i].value;
    parameter.mutable_grad() = at::from_blob(values(i).data(), parameter.sizes(), at::kFloat);
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Hook>(*this, i));
  }
}

Gradients::~Gradients() {
  for (const auto& [name, value] : network_.parameters) {
    at::Tensor parameter = value;
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
    parameter.mutable_grad().reset();
  }
}

std::span<float> Gradients::values(std::size_t i) const {
  if (!synchronizer_) return {const_cast<float*>(own_.data()) + offsets_[i], gradients_[i].elements};
  const Buffer buffer = synchronizer_->gradient(i);
  return {static_cast<float*>(buffer.data), buffer.count};
}

void Gradients::begin_backward(bool last_micro_batch) {
  last_micro_batch_ = last_micro_batch;
  if (synchronizer_) synchronizer_->accumulate(!last_micro_batch);
  backward_since_s_ = options_.trace->now_s();
}

void Gradients::without_backward() {
  begin_backward(true);
  for (std::size_t i = count(); i-- > 0;) ready(i);
}

void Gradients::ready(std::size_t i) {
  trace_backward(i);
  if (!last_micro_batch_) return;
  if (!arrived_[i]) ++arrivals_;
  arrived_[i] = true;
  if (synchronizer_) synchronizer_->ready(i);
}

void Gradients::trace_backward(std::size_t i) {
  if (!options_.trace->running()) return;
  const double now_s = options_.trace->now_s();
  options_.trace->add({"backward", gradients_[i].name, backward_since_s_, now_s, 4 * gradients_[i].elements});
  backward_since_s_ = now_s;
}

double Gradients::finish(const Use& use) {
  const bool all_ready = arrivals_ == count();
  arrived_.assign(count(), false);
  arrivals_ = 0;
  if (!synchronizer_) {
    finish_alone();
    use(0, count() - 1);
    return 0;
  }
  double waited_s = 0;
  // A gradient that never came is for the synchronizer to judge before anything is used.
  const bool at_once = all_ready && options_.clip_norm == 0;
  if (!at_once) waited_s += timed([&] { synchronizer_->wait(); });
  for (const BucketInfo& bucket : synchronizer_->buckets()) {
    if (at_once) waited_s += wait_for(bucket);
    use(bucket.first, bucket.last);
  }
  if (at_once) waited_s += timed([&] { synchronizer_->wait(); });
  return waited_s;
}

double Gradients::wait_for(const BucketInfo& bucket) {
  const double begin_s = options_.trace->now_s();
  const double waited_s = timed([&] { synchronizer_->wait(bucket.first); });
  if (options_.trace->running()) {
    const std::string& first = gradients_[bucket.first].name;
    const std::string name = bucket.first == bucket.last ? first : first + " .. " + gradients_[bucket.last].name;
    options_.trace->add({"wait", name, begin_s, options_.trace->now_s(), 0});
  }
  return waited_s;
}

void Gradients::finish_alone() {
  if (options_.clip_norm <= 0) return;
  double squares = 0;
  for (const float value : own_) squares += static_cast<double>(value) * value;
  if (std::sqrt(squares) <= options_.clip_norm) return;
  const auto scale = static_cast<float>(options_.clip_norm / std::sqrt(squares));
  for (float& value : own_) value *= scale;
}

std::vector<BucketInfo> Gradients::buckets() const {
  if (!synchronizer_) return {};
  const auto buckets = synchronizer_->buckets();
  return {buckets.begin(), buckets.end()};
}

std::uint64_t Gradients::wire_bytes() const { return synchronizer_ ? synchronizer_->statistics().wire_bytes : 0; }

}  // namespace syncopate::train
