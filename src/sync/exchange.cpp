// Exchanges by name, and how they use the group.
#include "sync/exchange.hpp"

#include "base/shelf.hpp"
#include "collective/group/impl.hpp"

namespace syncopate {

namespace sync {

const Exchange& exchange_named(std::string_view name) { return base::entry_named("exchange", name, exchanges()); }

void carry_out(Group& group, Collective collective, Buffer data, const CollectiveOptions& options) {
  group.impl().run({collective, data, options, transport::Patience{}});
}

}  // namespace sync

Updater updater_of(std::string_view exchange) { return sync::exchange_named(exchange).updater; }

}  // namespace syncopate
