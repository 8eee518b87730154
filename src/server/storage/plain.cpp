// Plain: updates add up on a worker, their average goes to the optimizer's rule, and workers get the weights.
#include "server/storage.hpp"

namespace syncopate::server::storage {

namespace {

Storages storages(std::span<const double> /*numbers*/) { return {}; }

}  // namespace

extern constinit const Storage plain{
    .name = "plain",
    .summary = "Updates add up, the servers apply their average, and workers get the weights",
    .source = "modular parameter server thesis, section 4.1",
    .storages = storages,
};

}  // namespace syncopate::server::storage
