// The settings, the sizes, and the buckets of a run, as one JSON object.
#include "record/run_record.hpp"

#include "syncopate/tooling/settings.hpp"

namespace syncopate::train {
Json run_record(const Run& run, const TrainingState& state, const Part& part, const Descent& descent) {
  const Options &o = run.options, &now = part.options;
  const ExchangePlan& plan = descent.plan();
  Json layers = Json::array(), buckets = Json::array();
  for (const auto& [name, value] : state.network.parameters)
    layers.push_back({{"name", name}, {"elements", value.numel()}});
  for (const BucketInfo& bucket : descent.gradients().buckets())
    buckets.push_back({{"first", bucket.first}, {"last", bucket.last}, {"bytes", bucket.bytes}});
  plan.codecs.describe(buckets);
  Json record{{"model", o.model},
              {"data", o.data},
              {"ranks", run.place.ranks},
              {"transport", run.is_served() ? "streams" : run.group.transport()},
              {"policy", run.is_served() ? o.worker.flow : o.sync.policy},
              {"codec", plan.refused_codec.empty() ? now.sync.coding.codec : "none"},
              {"exchange", now.sync.exchange},
              {"optimizer", descent.rule()},
              {"algorithm", now.sync.algorithm},
              {"serial", o.serial},
              {"batch", run.samples_per_step(part) / static_cast<std::size_t>(run.place.ranks)},
              {"global_batch", run.samples_per_step(part)},
              {"accumulate", o.accumulate},
              {"steps", run.last_step(state.progress)},
              {"threads", o.threads},
              {"seed", state.seed},
              {"training_samples", run.data->training_samples()},
              {"evaluation_samples", run.data->evaluation_samples()},
              {"parameters", state.parameters.numel()},
              {"gradient_bytes", descent.gradients().bytes()},
              {"command", o.command},
              {"layers", layers},
              {"buckets", buckets}};
  const auto add = [&record](const auto& settings, const auto& given) {
    for (const auto& setting : settings) record["settings"][setting.name] = setting.text(given);
  };
  add(coding_settings(), plan.options.coding);
  add(planning_settings(), plan.options);
  add(exchange_settings(), plan.options);
  if (run.is_served()) add(worker_settings(), o.worker);
  if (!plan.refused_codec.empty()) record["refused_codec"] = plan.refused_codec;
  if (!plan.codecs.unused().empty()) record["unused_codecs"] = plan.codecs.unused();
  if (o.origin_rate > 0) record["origin_rate"] = o.origin_rate;
  if (run.is_served()) record["consistency"] = o.worker.consistency;
  if (run.is_served()) record["placement"] = o.worker.placement;
  if (descent.updater() == Updater::every_rank) record["broadcast_every"] = o.sync.broadcast_every;
  if (!o.recipe) return record;
  record["recipe"] = o.recipe_file;
  record["part"] = part.number;
  for (const Part& each : run.parts) record["parts"].push_back(row_of(each));
  return record;
}

}  // namespace syncopate::train
