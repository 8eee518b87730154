// Descriptor: an open file that closes itself, also in a child that is forked without exec.
#include "transport/socket/descriptor.hpp"

namespace syncopate::transport::socket {

Descriptor::Descriptor(int number, System& system) try : number_(number), system_(&system) {
  if (number >= 0) system.own(number);
} catch (...) {
  system.close(number);
  throw;
}

Descriptor::~Descriptor() {
  if (number_ >= 0 && !process_.is_inherited()) system_->close(number_);
}

}  // namespace syncopate::transport::socket
