// Fits a line on several ranks: each rank has its own points, and the synchronizer averages the gradients.
#include <cmath>
#include <cstdio>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "syncopate/syncopate.hpp"

namespace {

/// y = slope * x + offset, and the gradient of the mean squared error, in the synchronizer's memory.
struct FittedLine {
  float slope = 0;
  float offset = 0;
};

constexpr int kPoints = 64;  // per rank
constexpr int kSteps = 200;
constexpr float kRate = 0.3F;

/// Rank r's share of the points of y = 3 x - 1, x in [-1, 1): no rank has all of them.
float point(int rank, int ranks, int i) {
  return 2.0F * static_cast<float>(rank * kPoints + i) / static_cast<float>(ranks * kPoints) - 1.0F;
}

void step(FittedLine& line, const syncopate::Group& group, syncopate::Synchronizer& synchronizer) {
  float& slope_gradient = *static_cast<float*>(synchronizer.gradient(0).data);
  float& offset_gradient = *static_cast<float*>(synchronizer.gradient(1).data);
  slope_gradient = offset_gradient = 0;
  for (int i = 0; i < kPoints; ++i) {
    const float x = point(group.rank(), group.size(), i);
    const float error = line.slope * x + line.offset - (3.0F * x - 1.0F);
    slope_gradient += 2.0F * error * x / kPoints;
    offset_gradient += 2.0F * error / kPoints;
  }
  synchronizer.ready(1);  // backward order: the exchange of a full bucket starts at once
  synchronizer.ready(0);
  synchronizer.wait();
  line.slope -= kRate * slope_gradient;
  line.offset -= kRate * offset_gradient;
}

/// Trains on one rank and returns whether the line was found. Prints an error, such as a lost rank or a wrong setting.
bool train(syncopate::Group& group) try {
  syncopate::Synchronizer synchronizer(group, {{.name = "slope", .elements = 1}, {.name = "offset", .elements = 1}});
  FittedLine line;
  for (int i = 0; i < kSteps; ++i) step(line, group, synchronizer);
  std::printf("rank %d of %d: y = %.4f x + %.4f\n", group.rank(), group.size(), line.slope, line.offset);
  return std::abs(line.slope - 3) < 1e-3F && std::abs(line.offset + 1) < 1e-3F;
} catch (const std::exception& error) {
  std::fprintf(stderr, "rank %d: %s\n", group.rank(), error.what());
  return false;
}

}  // namespace

int main() try {
  // In a job: its ranks. Alone: four threads of this process with the in-process transport.
  if (const auto group = syncopate::Group::join(); group->size() > 1) return train(*group) ? 0 : 1;
  auto groups = syncopate::Group::threads(4);
  std::vector<int> found(groups.size(), 0);
  {
    std::vector<std::jthread> ranks;
    for (std::size_t r = 0; r < groups.size(); ++r) ranks.emplace_back([&, r] { found[r] = train(*groups[r]); });
  }
  for (const int ok : found) {
    if (!ok) return 1;
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
