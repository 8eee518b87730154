// The parameter server: weights lie on servers, workers push updates and read weights back, each at its own pace.
// Modular parameter server thesis; docs/server.md.
//
//   each layer, back to front:   push(update)         each layer, front to back:   wait for its weights
//   bytes per worker and step:   n up and n down in lockstep, less where updates add up (ssp, adaptive)
//
// Workers are no ranks of a group, and do not move in lockstep: a Synchronizer refuses it. Programs use
// syncopate/server.hpp, as `syncopate train --exchange parameter_server` does.
#include "sync/exchange.hpp"

namespace syncopate::sync::exchange {

extern constinit const Exchange parameter_server{
    .name = "parameter_server",
    .summary = "Servers keep the weights (--consistency, --placement); workers push and read at their own pace",
    .source = "Modular parameter server thesis",
    .updater = Updater::servers,
    .serves = {},
    .combine = nullptr,
};

}  // namespace syncopate::sync::exchange
