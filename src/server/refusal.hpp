// Refusal: what a worker has done wrong, as opposed to a component of the server's catalogue.
#pragma once

#include <string>

#include "syncopate/error.hpp"

namespace syncopate::server {

/// The worker gets a Misuse with this text, and the others continue. A Misuse is of a component, and ends the job.
class Refusal final : public Error {
 public:
  explicit Refusal(const std::string& message) : Error(ErrorKind::misuse, message) {}
};

}  // namespace syncopate::server
