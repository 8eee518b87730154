// Served weights in a build without gRPC: both functions throw Misuse.
#include "syncopate/error.hpp"
#include "update/served.hpp"

namespace syncopate::train {

Place place_among_workers() {
  throw Misuse("--exchange parameter_server: this program was built without gRPC; run scripts/install and build again");
}

std::unique_ptr<ServedWeights> serve(const Network& /*network*/, const Options& /*options*/,
                                     const Earlier& /*earlier*/) {
  return nullptr;
}

}  // namespace syncopate::train
