// Endpoints of ranks that are threads of one process.
#include "transport/endpoint.hpp"

#include "transport/inproc/control.hpp"
#include "transport/inproc/transport.hpp"

namespace syncopate::transport {

std::vector<Endpoint> inproc_endpoints(int size, const GroupOptions& /*options*/) {
  auto hub = std::make_shared<Hub>(size);
  std::vector<Endpoint> endpoints;
  for (int rank = 0; rank < size; ++rank) {
    auto control = std::make_shared<InprocControl>(hub, rank);
    endpoints.push_back({.rank = rank,
                         .size = size,
                         .kind = "inproc",
                         .hosts = std::vector<std::string>(static_cast<std::size_t>(size), "this process"),
                         .control = control,
                         .links = std::make_unique<InprocTransport>(hub, control, rank)});
  }
  return endpoints;
}

}  // namespace syncopate::transport
