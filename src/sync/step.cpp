// The flow of one bucket in one step: narrow, encode, combine, decode, widen, apply; and later deliver.
#include "sync/step.hpp"

#include <algorithm>

#include "base/require.hpp"
#include "kernel/cast.hpp"
#include "sync/flow.hpp"
#include "syncopate/error.hpp"

namespace syncopate::sync {

namespace {

using OptionalSpan = std::optional<Traced>;

bool narrows(const StepContext& context) { return context.exchange.narrowing.has_value(); }

OptionalSpan span_if(bool wanted, const StepContext& context, const char* track, const Bucket& bucket) {
  if (!wanted) return std::nullopt;
  return OptionalSpan(std::in_place, context.trace, track, bucket.name, bucket.bytes);
}

/// An exchange that narrows communicates in every phase: its one span of exchange contains its coding.
OptionalSpan coding_span(const StepContext& context, const char* track, const Bucket& bucket) {
  const bool is_coded = std::ranges::any_of(bucket.groups, &CodingGroup::is_coded);
  return span_if(is_coded && !narrows(context), context, track, bucket);
}

ExchangeContext exchange_context(const StepContext& context, const Bucket& bucket, CodingGroup& group) {
  return {context.group, context.algorithm, bucket.name, group.answers};
}

NarrowedTensors narrowed(CodingGroup& group, const StepContext& context) {
  return {group.whole, group.part, group.packed, group.gradients, context.cut};
}

/// Copies 16-bit gradients and weights to f32 where the coder takes f32 only.
void upcast(const CodingGroup& group) {
  for (const std::vector<Upcast>* const copies : {&group.gradients_upcast, &group.weights_upcast})
    for (const auto& [halves, floats] : *copies)
      kernel::cast({halves.dtype, floats.dtype}, halves.bytes().data(), floats.bytes().data(), halves.count);
}

/// Rounds averages to the type of their gradients, once.
void downcast(const CodingGroup& group) {
  for (const auto& [halves, floats] : group.gradients_upcast)
    kernel::cast({floats.dtype, halves.dtype}, floats.bytes().data(), halves.bytes().data(), halves.count);
}

/// Gets the first round from the coder, with the codec's state for this rank's rows.
void encode(CodingGroup& group, const StepContext& context) {
  for (std::size_t i = 0; i < group.part.size(); ++i) {
    group.part[i].kept = context.state.kept(group.gradients[i]);
    group.part[i].next = context.state.next(group.gradients[i]);
    group.part[i].report = &context.reports.selections[group.gradients[i]];
  }
  const compress::StepInfo info{context.state.steps(), context.share.rank, context.share.ranks};
  group.round = group.coder->begin(group.part, info, {group.wire.get(), group.wire_bytes});
}

/// Answers rounds. The answer of a round that ends the conversation is kept for `decode`.
void combine(CodingGroup& group, const StepContext& context, const ExchangeContext& exchange) {
  for (std::size_t rounds = 1; group.round; ++rounds) {
    base::require(rounds <= compress::kMostRounds,
                  "codec {} has had {} rounds for the gradients of one bucket and begins another; allowed: at most {}; "
                  "end the conversation (`next` returns nothing, or the generator returns)",
                  context.codecs[group.gradients.front()].codec->name, compress::kMostRounds, compress::kMostRounds);
    const bool ends = group.round->ends;
    context.reports.payload_bytes += group.round->payload.bytes().size();
    const compress::Answer answer = context.exchange.combine(exchange, *group.round);
    if (ends && !answer.declined) {
      group.round.reset();
      group.answer = answer;
    } else {
      group.round = group.coder->next(answer);
    }
  }
}

void decode(CodingGroup& group) {
  if (!group.answer) return;
  group.round = group.coder->next(*group.answer);
  group.answer.reset();
  if (group.round) throw Misuse("a codec returned another round after the one that it marked as the last");
}

/// A step that made the state of a gradient useless must not count, on any rank.
void check_finite(const CodingGroup& group, const StepContext& context) {
  const compress::Settings& settings = context.codecs[group.gradients.front()];
  const auto is_finite = [&](const compress::Tensor& tensor) {
    return tensor.next.empty() || compress::is_finite(settings, tensor, group.is_coded);
  };
  if (!std::ranges::all_of(group.part, is_finite)) context.state.note_not_finite();
}

/// The weights of a coding group are cut and packed as its gradients are.
void gather_weights(const GathersWeights& ending, CodingGroup& group, const StepContext& context,
                    const ExchangeContext& exchange) {
  std::vector<compress::Tensor> weights = group.whole;
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].values = context.updater.weights_of(group.gradients[i]);
  ending.gather(exchange, {weights, {}, group.packed, group.gradients, context.cut});
}

}  // namespace

void run_bucket(Bucket& bucket, const StepContext& context, const std::function<void()>& averaged) {
  {
    const OptionalSpan span = span_if(narrows(context), context, "exchange", bucket);
    prepare(bucket, context);
    combine(bucket, context);
    complete(bucket, context);
  }
  if (averaged) averaged();
  context.updater.apply(bucket);
}

void prepare(Bucket& bucket, const StepContext& context) {
  const OptionalSpan span = coding_span(context, "encode", bucket);
  for (CodingGroup& group : bucket.groups) {
    upcast(group);
    if (narrows(context))
      context.exchange.narrowing->narrow(exchange_context(context, bucket, group), narrowed(group, context));
    encode(group, context);
  }
}

void combine(Bucket& bucket, const StepContext& context) {
  const OptionalSpan span = span_if(!narrows(context), context, "exchange", bucket);
  for (CodingGroup& group : bucket.groups) combine(group, context, exchange_context(context, bucket, group));
}

void complete(Bucket& bucket, const StepContext& context) {
  const auto has_work = [](const CodingGroup& group) {
    const auto keeps = [](const compress::Tensor& tensor) { return !tensor.next.empty(); };
    return group.answer || !group.gradients_upcast.empty() || std::ranges::any_of(group.part, keeps);
  };
  if (!narrows(context) && std::ranges::none_of(bucket.groups, has_work)) return;
  const OptionalSpan span = coding_span(context, "decode", bucket);
  for (CodingGroup& group : bucket.groups) {
    decode(group);
    check_finite(group, context);
    if (narrows(context))
      context.exchange.narrowing->widen(exchange_context(context, bucket, group), narrowed(group, context));
    downcast(group);
  }
}

void deliver(Bucket& bucket, const StepContext& context) {
  context.updater.complete(bucket);
  if (!context.updater.broadcasts()) return;
  const Traced span(context.trace, "broadcast", bucket.name, bytes_of(bucket.weights));
  if (const auto* gathers = std::get_if<GathersWeights>(&context.exchange.ending)) {
    for (CodingGroup& group : bucket.groups)
      gather_weights(*gathers, group, context, exchange_context(context, bucket, group));
  } else if (const auto* broadcasts = std::get_if<BroadcastsWeights>(&context.exchange.ending)) {
    for (const Buffer weights : bucket.weights)
      broadcasts->broadcast(exchange_context(context, bucket, bucket.groups.front()), weights);
  }
}

}  // namespace syncopate::sync
