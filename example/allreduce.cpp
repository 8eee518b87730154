// Averages a vector over all ranks of a job: the smallest program that uses Syncopate.
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "syncopate/syncopate.hpp"

int main() try {
  // Rank and size come from `syncopate run`, torchrun, Slurm or mpirun; alone, the group has one rank.
  const auto group = syncopate::Group::join();
  std::vector<float> gradient(1 << 20, static_cast<float>(group->rank()));

  syncopate::allreduce(*group, std::span(gradient), {.op = syncopate::ReduceOp::average, .name = "gradient"});

  std::printf("rank %d of %d: average %g\n", group->rank(), group->size(), gradient[0]);
  return 0;
} catch (const std::exception& error) {  // a lost rank, a wrong setting: the text names it
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
