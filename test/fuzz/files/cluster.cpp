// Cluster files, and the costs that a group takes from them.
#include "syncopate/cluster.hpp"

#include "fuzz/target.hpp"

namespace syncopate::fuzz::target {

void cluster(Input input) {
  may_refuse<Misuse>([&] {
    const Cluster cluster = parse_cluster(text_of(input), "file");
    hold(cluster.ranks >= 1 && cluster.ranks_per_host >= 1, "there is a rank");
    for (const char* transport : {"tcp", "shm"}) hold(cost_of(cluster, transport).inter.alpha_s >= 0, "time passes");
    for (const MeasuredCost& cost : cluster.costs)
      std::ignore = warning_about_size(cost_of(cluster), cluster.ranks, cost.collective, 1e9);
  });
}

}  // namespace syncopate::fuzz::target
