// Traced: records a span from its construction to its destruction, if there is a trace.
#pragma once

#include <string>

#include "syncopate/trace.hpp"

namespace syncopate::sync {

class Traced final {
 public:
  Traced(Trace* trace, const char* track, const std::string& name, std::uint64_t bytes)
      : trace_(trace != nullptr && trace->running() ? trace : nullptr) {
    if (trace_ != nullptr) span_ = {track, name, trace_->now_s(), 0, bytes};
  }
  ~Traced() {
    if (trace_ == nullptr) return;
    span_.end_s = trace_->now_s();
    trace_->add(std::move(span_));
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

 private:
  Trace* trace_;
  Span span_;
};

}  // namespace syncopate::sync
