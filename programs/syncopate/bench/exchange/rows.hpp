// Rows of exchanges: measured seconds, and the predicted seconds of their bytes and their work within hosts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/exchange/law.hpp"

namespace syncopate::tools::bench {

class ExchangeRows final {
 public:
  ExchangeRows(const std::vector<ExchangeSubject>& subjects, const ExchangePlace& place, double bits_per_s);
  /// Takes a raw row of run_exchanger; returns false for other lines. If the ports are not `shaped`, the row gives the
  /// seconds of the work within hosts.
  bool take(const std::string& line, bool shaped);

  [[nodiscard]] bool all_correct() const;
  [[nodiscard]] std::vector<nlohmann::json> json() const;
  /// One line per exchange, then the break-even densities.
  [[nodiscard]] std::string table() const;

 private:
  struct Series {
    ExchangeSubject subject;
    bool correct = true;
    std::vector<double> seconds, local;  ///< on shaped ports, and on ports that are not
    double port_bytes = 0;
  };
  [[nodiscard]] double law_seconds(const ExchangeSubject& subject, IndexLaw law) const;
  [[nodiscard]] double model_seconds(const Series& series) const;

  std::vector<Series> series_;
  ExchangePlace place_;
  double bits_per_s_;
};

}  // namespace syncopate::tools::bench
