// ImmediateJob: a job whose messages travel in no time, with the weights of its workers.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "laws/immediate_job.hpp"

namespace syncopate::server {

using Values = std::vector<float>;

class ImmediateJob final {
 public:
  /// `first`: the initial weights of every table; empty: zeros.
  explicit ImmediateJob(const Setup& setup, std::vector<Values> first = {})
      : weights_(setup.workers, first.empty() ? zeros(setup) : std::move(first)),
        job_(setup, [this](std::size_t worker, std::size_t table) { return std::span(weights_[worker][table]); }) {}

  void step(double rate, const laws::ImmediateJob::Gradient& gradient) { ASSERT_TRUE(job_.step(rate, gradient)); }
  void finish() { ASSERT_TRUE(job_.finish()); }
  [[nodiscard]] const Values& weights(std::size_t worker, std::size_t table) const { return weights_[worker][table]; }
  ServerTables& server(std::size_t index) { return job_.server(index); }

 private:
  static std::vector<Values> zeros(const Setup& setup) {
    std::vector<Values> all;
    for (const TableShape& table : setup.tables) all.emplace_back(table.elements);
    return all;
  }

  std::vector<std::vector<Values>> weights_;  ///< by worker and table
  laws::ImmediateJob job_;
};

}  // namespace syncopate::server
