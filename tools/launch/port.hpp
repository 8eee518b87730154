// A free TCP port on loopback that stays reserved until rank 0 listens on it.
#pragma once

#include "launch/process/descriptor.hpp"

namespace syncopate::tools::launch {

/// Law: while this object lives, the system gives the port to nobody that does not ask for it by number. It is bound,
/// not listening, and SO_REUSEADDR is set, so that a listener which sets SO_REUSEADDR too (ours does) may take it.
class ReservedPort final {
 public:
  ReservedPort();
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  process::Descriptor socket_;
  int number_ = 0;
};

}  // namespace syncopate::tools::launch
