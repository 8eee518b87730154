// Control between ranks of one process: they share memory, so no messages are needed.
#pragma once

#include <memory>

#include "transport/inproc/hub.hpp"

namespace syncopate::transport::inproc {

class InprocControl final : public membership::Control {
 public:
  InprocControl(std::shared_ptr<Hub> hub, int rank) : hub_(std::move(hub)), rank_(rank) {}

  [[nodiscard]] std::optional<membership::Failure> failure() const override;
  [[nodiscard]] bool failed() const noexcept override { return hub_->failed.load(std::memory_order_acquire); }
  void report(membership::Failure failure) override;
  void began(const membership::OperationRecord& record) override;
  void mismatch(int peer, std::uint64_t number) override;
  [[nodiscard]] bool has_left(int peer) const override;
  /// A rank reports what it fails of before it leaves.
  [[nodiscard]] base::Duration grace() const override { return {}; }
  [[nodiscard]] std::string laggards(std::uint64_t number) const override;

  /// This rank makes no more calls, and takes and makes no more offers.
  void leave();

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
};

}  // namespace syncopate::transport::inproc
