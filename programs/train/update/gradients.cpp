// Gradients in an arena: filled through autograd hooks, and given to the optimizer bucket by bucket.
#include "update/gradients.hpp"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "require.hpp"
#include "update/finite.hpp"

namespace syncopate::train {

namespace {

template <class Wait>
double timed(const Wait& wait) {
  const auto begin = std::chrono::steady_clock::now();
  wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

GradientShape shape_of(const at::Tensor& parameter) {
  const auto rows = static_cast<std::size_t>(parameter.size(0));
  const auto columns = parameter.dim() > 1 ? static_cast<std::size_t>(parameter.size(1)) : 1;
  return {columns, static_cast<std::size_t>(parameter.numel()) / (rows * columns)};
}

}  // namespace

std::vector<Gradient> gradients_of(const Network& network) {
  std::vector<Gradient> gradients;
  for (const auto& [name, value] : network.parameters)
    gradients.push_back({.name = name,
                         .elements = static_cast<std::size_t>(value.numel()),
                         .rows = value.dim() > 1 ? static_cast<std::size_t>(value.size(0)) : 0});
  return gradients;
}

/// Called by autograd when a parameter's gradient has been added to its memory.
class Gradients::Hook final : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(Gradients& owner, std::size_t index) : owner_(owner), index_(index) {}
  void operator()(const torch::autograd::Variable&) override { owner_.ready(index_); }

 private:
  Gradients& owner_;
  std::size_t index_;
};

Gradients::Gradients(Group& group, const Network& network, SynchronizerOptions options, Mode mode)
    : group_(group),
      network_(network),
      options_(std::move(options)),
      together_(mode.together || options_.clip_norm > 0),
      serial_(mode.serial || (mode.served && options_.clip_norm > 0)),  // clipping needs all gradients
      ends_in_weights_(mode.served || updater_of(options_.exchange) != Updater::caller),
      served_(std::move(mode.served)),
      gradients_(gradients_of(network)) {
  for (std::size_t i = 0; i < mode.codecs.size(); ++i) gradients_[i].codec = mode.codecs[i];
  for (const Gradient& gradient : gradients_) {
    offsets_.push_back(elements_);
    elements_ += gradient.elements;
  }
  for (const auto& [name, value] : network.parameters)
    options_.weights.emplace_back(value.data_ptr(), static_cast<std::size_t>(value.numel()), DType::f32);
  arrived_.resize(gradients_.size());
  if (options_.exchange == "none" || served_)
    own_.resize(elements_);
  else
    synchronizer_ = std::make_unique<Synchronizer>(group, gradients_, options_);
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    at::Tensor parameter = network.parameters[i].value;
    parameter.mutable_grad() = at::from_blob(values(i).data(), parameter.sizes(), at::kFloat);
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<Hook>(*this, i));
  }
  sent_before_ = served_ ? served_->served().pushed_bytes : group.traffic().sent_bytes;
  if (ends_in_weights_ && !serial_)
    *network.before_use = [this](std::size_t parameter) { wait_for_weights(parameter); };
}

Gradients::~Gradients() {
  *network_.before_use = nullptr;
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
  finish_exchange();
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
  if (found_not_finite_ && !looks_finite(values(i), shape_of(network_.parameters[i].value)))
    std::exchange(found_not_finite_, nullptr)(gradients_[i].name);
  if (!arrived_[i]) ++arrivals_;
  arrived_[i] = true;
  if (serial_) return;
  if (synchronizer_) synchronizer_->ready(i);
  if (served_) served_->update(i, values(i), rate_);
}

void Gradients::trace_backward(std::size_t i) {
  if (!options_.trace->running()) return;
  const double now_s = options_.trace->now_s();
  options_.trace->add({"backward", gradients_[i].name, backward_since_s_, now_s, 4 * gradients_[i].elements});
  backward_since_s_ = now_s;
}

void Gradients::finish(const Use& use) {
  if (serial_ && synchronizer_)
    for (std::size_t i = count(); i-- > 0;)
      if (arrived_[i]) synchronizer_->ready(i);
  const bool all_ready = arrivals_ == count();
  arrived_.assign(count(), false);
  arrivals_ = 0;
  if (served_) return hand_over();
  if (!synchronizer_) {
    clip_own();
    return use(0, count() - 1);
  }
  if (ends_in_weights_) {
    weights_under_way_ = true;
    weights_here_ = 0;
    if (serial_) finish_exchange();
  } else {
    finish_in_gradients(use, all_ready);
  }
  const std::uint64_t sent = group_.traffic().sent_bytes;
  wire_bytes_ = sent - sent_before_;
  sent_before_ = sent;
}

void Gradients::finish_in_gradients(const Use& use, bool all_ready) {
  // If a gradient is missing, the synchronizer reports it before anything is used.
  const bool at_once = all_ready && !serial_ && !together_;
  if (at_once)
    while (const std::optional<BucketInfo> bucket = wait_for([&] { return synchronizer_->next_bucket(); }))
      use(bucket->first, bucket->last);
  waited_s_ += timed([&] { synchronizer_->wait(); });
  if (!at_once) use(0, count() - 1);
}

void Gradients::finish_exchange() {
  if (!weights_under_way_) return;
  waited_s_ += timed([&] {
    if (served_)
      for (std::size_t i = weights_here_; i < count(); ++i) served_->wait(i);
    else
      synchronizer_->wait();
  });
  weights_under_way_ = false;
}

/// Hands over gradients that have not been handed over yet, each clipped by its own norm if that is configured.
void Gradients::hand_over() {
  if (serial_) {
    clip_own();
    for (std::size_t i = count(); i-- > 0;) served_->update(i, values(i), rate_);
  }
  served_->end_step(rate_);
  weights_under_way_ = true;
  weights_here_ = 0;
  if (serial_) finish_exchange();
  const std::uint64_t sent = served_->served().pushed_bytes;
  wire_bytes_ = sent - sent_before_;
  sent_before_ = sent;
}

Served Gradients::finish_served() {
  waited_s_ += timed([&] { served_->finish(); });
  return served_->served();
}

void Gradients::begin_codecs(std::uint64_t step) {
  SavedCodecState fresh = codec_state();
  if (fresh.gradients.empty()) return;  // no synchronizer
  fresh.steps = step;
  restore(fresh);
}

std::vector<SentRow> Gradients::take_sent() {
  std::vector<SentRow> taken;
  if (!synchronizer_) return taken;
  const std::vector<SentShare> now = synchronizer_->sent_shares();
  shares_before_.resize(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::uint64_t elements = now[i].elements - shares_before_[i].elements;
    if (elements == 0) continue;
    const auto sent = static_cast<double>(now[i].sent - shares_before_[i].sent);
    const auto proposed = static_cast<double>(now[i].proposed - shares_before_[i].proposed);
    taken.push_back({.gradient = gradients_[i].name,
                     .elements = gradients_[i].elements,
                     .density = sent / static_cast<double>(elements),
                     .threshold = now[i].threshold,
                     .spread = now[i].spread,
                     .proposed = proposed / static_cast<double>(elements),
                     .importances = now[i].importances});
  }
  shares_before_ = now;
  return taken;
}

double Gradients::take_waited_s() { return std::exchange(waited_s_, 0); }

/// A layer may use its parameters in any order, so this waits for all parameters up to this one.
void Gradients::wait_for_weights(std::size_t parameter) {
  if (!weights_under_way_ || parameter < weights_here_) return;
  const auto bucket = wait_for([&] {
    BucketInfo here;
    for (std::size_t i = weights_here_; i <= parameter; i = here.last + 1) here = weights_of(i);
    return std::optional(here);
  });
  weights_here_ = bucket->last + 1;
}

BucketInfo Gradients::weights_of(std::size_t parameter) {
  if (synchronizer_) return synchronizer_->wait(parameter);
  served_->wait(parameter);
  return {parameter, parameter, 4 * gradients_[parameter].elements};
}

template <class Wait>
std::optional<BucketInfo> Gradients::wait_for(const Wait& wait) {
  const double begin_s = options_.trace->now_s();
  std::optional<BucketInfo> bucket;
  waited_s_ += timed([&] { bucket = wait(); });
  if (bucket && options_.trace->running())
    options_.trace->add({"wait", bucket_name(*bucket), begin_s, options_.trace->now_s(), 0});
  return bucket;
}

std::string Gradients::bucket_name(const BucketInfo& bucket) const {
  const std::string& first = gradients_[bucket.first].name;
  return bucket.first == bucket.last ? first : first + " .. " + gradients_[bucket.last].name;
}

void Gradients::clip_own() {
  if (options_.clip_norm <= 0) return;
  double squares = 0;
  for (const float value : own_) squares += static_cast<double>(value) * value;
  if (std::sqrt(squares) <= options_.clip_norm) return;
  const auto scale = static_cast<float>(options_.clip_norm / std::sqrt(squares));
  for (float& value : own_) value *= scale;
}

std::vector<BucketInfo> Gradients::buckets() const {
  if (!synchronizer_) return {};
  return synchronizer_->buckets();
}

}  // namespace syncopate::train
