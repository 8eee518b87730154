// Codec benchmark: who takes part, the input, and the rounds in which they take turns.
#include "bench/codec/benchmark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "arguments.hpp"
#include "bench/codec/nth_element.hpp"
#include "bench/codec/rows.hpp"
#include "bench/options.hpp"
#include "bench/rows.hpp"
#include "progress.hpp"
#include "syncopate/error.hpp"
#include "syncopate/tooling/shelves.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

constexpr const char* kOurs = "syncopate";
constexpr const char* kNthElement = "nth_element";

/// One codec of one contender.
struct Subject {
  CodecSeries series;
  bool selects = false;
  std::function<LoopbackStep(std::span<float>)> step;
};

Subject ours(const std::string& codec, const CodecRequest& request, std::size_t elements) {
  const auto loopback = std::make_shared<CodecLoopback>(
      LoopbackOptions{.codec = codec, .feedback = feedback_named(request.feedback), .elements = elements});
  Subject subject{.series = {.codec = codec, .contender = kOurs, .elements = elements},
                  .selects = loopback->selects(),
                  .step = [loopback](std::span<float> gradient) { return loopback->step(gradient); }};
  subject.series.density = loopback->density().value_or(1);
  return subject;
}

Subject nth_element(const CodecSeries& beside, const CodecRequest& request) {
  const auto selected = static_cast<std::size_t>(std::ceil(beside.density * static_cast<double>(beside.elements)));
  const auto contender = std::make_shared<NthElement>(beside.elements, selected, request.feedback == "residual");
  Subject subject{.series = beside, .selects = true, .step = [contender](std::span<float> gradient) {
                    return contender->step(gradient);
                  }};
  subject.series.contender = kNthElement;
  return subject;
}

std::vector<std::string> contenders_of(const CodecRequest& request) {
  std::vector<std::string> names =
      request.contenders == "all" ? std::vector<std::string>{kOurs, kNthElement} : parts_of(request.contenders);
  std::ranges::replace(names, std::string("ours"), std::string(kOurs));
  if (names.empty()) throw Misuse(fmt::format("--contenders names none; allowed: all, {}, {}", kOurs, kNthElement));
  for (const std::string& name : names)
    if (name != kOurs && name != kNthElement)
      throw Misuse(unknown_word("contender", name, {"all", kOurs, kNthElement}));
  return names;
}

/// The shelf, with the two densities that papers quote of top-k.
std::vector<std::string> whole_shelf() {
  std::vector<std::string> names;
  for (const ShelfEntry& entry : shelf_entries()) {
    if (entry.shelf != "codec") continue;
    if (entry.name == "topk") names.emplace_back("topk:0.001");
    names.emplace_back(entry.name == "topk" ? "topk:0.01" : entry.name);
  }
  return names;
}

/// A codec given by name must support the request. With "all", codecs that do not are left out, and the reason is
/// logged.
std::vector<Subject> subjects_of(const CodecRequest& request, std::size_t elements, const Session& session) {
  const std::vector<std::string> contenders = contenders_of(request);
  const auto takes_part = [&](const char* name) { return std::ranges::find(contenders, name) != contenders.end(); };
  const bool all = request.codecs == "all";
  std::vector<Subject> subjects;
  for (const std::string& codec : all ? whole_shelf() : codecs_of(request.codecs)) try {
      const Subject subject = ours(codec, request, elements);
      if (takes_part(kOurs)) subjects.push_back(subject);
      if (takes_part(kNthElement) && codec.starts_with("topk"))
        subjects.push_back(nth_element(subject.series, request));
    } catch (const Misuse& why) {
      if (!all) throw;
      session.log.write(LogLevel::warning, fmt::format("without codec {}: {}", codec, why.what()));
    }
  if (subjects.empty())
    throw Misuse(fmt::format("nothing to measure: no codec, or none that {} codes", fmt::join(contenders, ", ")));
  return subjects;
}

/// A gradient of normal elements, in another rotation for each step: residuals add up as those of independent steps.
class Input final {
 public:
  explicit Input(std::size_t elements) : values_(elements) {
    std::mt19937_64 random(elements);
    std::normal_distribution<float> normal;
    for (float& value : values_) value = normal(random);
  }
  void write(std::size_t step, std::span<float> into) const {
    constexpr double kGoldenRatio = 0.6180339887498949;
    const double turns = static_cast<double>(step) * kGoldenRatio;
    const auto first = static_cast<std::size_t>((turns - std::floor(turns)) * static_cast<double>(values_.size()));
    std::rotate_copy(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(first), values_.end(),
                     into.begin());
  }
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }

 private:
  std::vector<float> values_;
};

double seconds_of_read(std::span<const float> elements) {
  const auto begin = std::chrono::steady_clock::now();
  static_cast<void>(read_once(elements));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The first step is not timed: it touches all memory, has no residual yet, and shows what a packet loses.
void begin(Subject& subject, const Input& input, std::span<float> gradient) {
  input.write(0, gradient);
  static_cast<void>(subject.step(gradient));
  CodecSeries& series = subject.series;
  series.error = relative_error(gradient, input.values());
  const auto zeros = static_cast<std::size_t>(std::ranges::count(gradient, 0.0F));
  series.selected = subject.selects ? gradient.size() - zeros : gradient.size();
}

void measure(Subject& subject, std::size_t step, const Input& input, std::span<float> gradient) {
  input.write(step, gradient);
  const double read_s = seconds_of_read(gradient);
  subject.series.add(subject.step(gradient), read_s);
}

}  // namespace

void declare(CLI::App& app, CodecRequest& request) {
  app.add_option("--codec", request.codecs, "Codecs with their parameters, comma-separated: topk:0.001,fp16; or all")
      ->capture_default_str();
  app.add_option("--contenders", request.contenders, "syncopate, nth_element (of topk); or all")->capture_default_str();
  app.add_option("--elements", request.elements, "Elements of the gradient: 1000, 25M, 16Mi")
      ->type_name("COUNT")
      ->check(element_count())
      ->capture_default_str();
  app.add_option("--feedback", request.feedback, "none; residual: what is left out is kept, and formed on the way")
      ->check(one_of("feedback", {"none", "residual"}))
      ->capture_default_str();
  app.add_option("--rounds", request.rounds, "Timed steps of every codec, in turn")
      ->check(between(1, 100000))
      ->capture_default_str();
}

int run_codec_benchmark(const CodecRequest& request, const Session& session) {
  constexpr std::uint64_t kMostElements = std::uint64_t{1} << 32;
  const std::uint64_t elements = parse_count(request.elements);
  if (elements == 0 || elements > kMostElements)
    throw Misuse(fmt::format("--elements {}; allowed: 1 to {}", request.elements, kMostElements));
  std::vector<Subject> subjects = subjects_of(request, elements, session);
  const Progress progress(session, "bench codec");
  const Input input(elements);
  std::vector<float> gradient(elements);
  for (Subject& subject : subjects) begin(subject, input, gradient);
  for (int round = 0; round < request.rounds; ++round)
    for (Subject& subject : subjects) {
      progress.show(
          fmt::format("round {}/{}, {} {}", round + 1, request.rounds, subject.series.codec, subject.series.contender));
      measure(subject, static_cast<std::size_t>(round) + 1, input, gradient);
    }
  progress.clear();
  std::vector<CodecSeries> rows;
  for (const Subject& subject : subjects) rows.push_back(subject.series);
  if (session.json) {
    for (const CodecSeries& row : rows) print_row(row_of(row));
    return 0;
  }
  print_text("{} elements of f32 on one core, feedback {}: {} rounds, interleaved; medians; a read takes {}\n{}",
             elements, request.feedback, request.rounds, format_seconds(median(rows.front().read_s)), table_of(rows));
  return 0;
}

}  // namespace syncopate::tools::bench
