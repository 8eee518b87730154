// A timeline of spans, and its export in Chrome's trace-event format.
#include "syncopate/trace.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/clock.hpp"
#include "base/guarded.hpp"

namespace syncopate {

struct Trace::State {
  std::atomic<bool> running{false};
  std::atomic<std::int64_t> zero_ns{0};
  base::Guarded<std::vector<Span>> spans;
};

Trace::Trace() : state_(std::make_unique<State>()) {}
Trace::~Trace() = default;

void Trace::restart() {
  state_->spans.with([](auto& spans) { spans.clear(); });
  state_->zero_ns.store(base::SteadyClock{}.now().time_since_epoch().count());
  state_->running.store(true);
}

void Trace::stop() { state_->running.store(false); }
bool Trace::running() const noexcept { return state_->running.load(std::memory_order_relaxed); }

double Trace::now_s() const noexcept {
  const auto now = base::SteadyClock{}.now().time_since_epoch().count();
  return static_cast<double>(now - state_->zero_ns.load()) * 1e-9;
}

void Trace::add(Span span) {
  if (running()) state_->spans.with([&](auto& spans) { spans.push_back(std::move(span)); });
}

std::vector<Span> Trace::spans() const {
  return state_->spans.with([](const auto& spans) { return spans; });
}

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (code < 0x20)
      result += fmt::format("\\u{:04x}", code);
    else
      result += c;
  }
  return result + "\"";
}

/// Row number (tid) of a track within its rank's process: tracks are numbered in the order in which they appear.
std::size_t row_of(std::vector<std::string>& tracks, const std::string& track) {
  for (std::size_t row = 0; row < tracks.size(); ++row)
    if (tracks[row] == track) return row;
  tracks.push_back(track);
  return tracks.size() - 1;
}

}  // namespace

std::string chrome_trace(const std::vector<std::vector<Span>>& ranks) {
  std::string events;
  const auto add = [&](const std::string& event) { events += (events.empty() ? "\n" : ",\n") + event; };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    add(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_name","args":{{"name":"rank {0}"}}}})", rank));
    std::vector<std::string> tracks;
    for (const Span& span : ranks[rank]) {
      const std::size_t row = row_of(tracks, span.track);
      add(fmt::format(
          R"({{"ph":"X","pid":{},"tid":{},"cat":{},"name":{},"ts":{:.3f},"dur":{:.3f},"args":{{"bytes":{}}}}})", rank,
          row, quoted(span.track), quoted(span.name), span.begin_s * 1e6, (span.end_s - span.begin_s) * 1e6,
          span.bytes));
    }
    for (std::size_t row = 0; row < tracks.size(); ++row)
      add(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", rank, row,
                      quoted(tracks[row])));
  }
  return "{\"traceEvents\":[" + events + "\n]}\n";
}

}  // namespace syncopate
