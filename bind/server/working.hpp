// Working: a TableWorker as an object of Python, which one thread uses at a time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "component/storage.hpp"
#include "server/closable.hpp"
#include "signals.hpp"
#include "syncopate/server.hpp"

namespace syncopate::bind {

/// One thread's call.
class Turn final {
 public:
  explicit Turn(bool& is_called) : is_called_(is_called) {
    if (is_called_) throw Misuse("another thread uses this worker; allowed: one thread at a time");
    is_called_ = true;
  }
  ~Turn() { is_called_ = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  bool& is_called_;
};

/// Created, used and destroyed with the GIL.
class Working final : public Closable<TableWorker> {
 public:
  Working(std::unique_ptr<TableWorker> worker, std::shared_ptr<std::vector<nb::object>> components,
          const WorkerOptions& options, std::shared_ptr<Signals> signals, const PythonStorage* storage)
      : Closable(std::move(worker), std::move(components), "worker"),
        worker_(options.worker),
        workers_(options.workers),
        signals_(std::move(signals)),
        storage_(storage) {}

  [[nodiscard]] std::size_t worker() const noexcept { return worker_; }
  [[nodiscard]] std::size_t workers() const noexcept { return workers_; }

  template <class Call>
  auto call(Call&& call) const {
    const auto used = own();
    const Turn turn(used->is_called);
    return signals_->without_gil([&] { return std::forward<Call>(call)(*used->object); });
  }
  /// Weights or a gradient: an array that is used in place, or the object itself if the job's storage loads it.
  [[nodiscard]] Array memory_of(nb::handle object, const char* role) const;
  /// The worker uses the memory in place.
  std::size_t create_table(const std::string& name, nb::handle weights, bool spared);

 private:
  std::size_t worker_, workers_;
  std::shared_ptr<Signals> signals_;
  const PythonStorage* storage_;  ///< null: the library's; held by the components
};

/// Tables of rows.
void define_rows(nb::class_<Working>& type);

}  // namespace syncopate::bind
