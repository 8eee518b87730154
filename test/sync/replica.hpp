// A small model trained by a synchronizer whose exchange ends in weights.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "syncopate/synchronizer.hpp"

namespace syncopate::test {

inline const std::vector<Gradient> kModel{{"conv1", 300}, {"bn1", 7}, {"fc1", 5000}, {"fc1.bias", 1}, {"fc2", 129}};
inline constexpr float kRate = 0.3F, kMomentum = 0.9F;

/// Weights with momentum. All weights lie in one memory, but those of "fc1", on odd ranks, are elsewhere.
struct Replica {
  explicit Replica(int rank) {
    std::size_t offset = 0;
    for (const Gradient& gradient : kModel) {
      const bool elsewhere = rank % 2 == 1 && gradient.name == "fc1";
      const std::span<float> place = elsewhere ? std::span(apart) : std::span(memory).subspan(offset);
      weights.emplace_back(place.data(), gradient.elements, DType::f32);
      offset += gradient.elements;
      velocity.emplace_back(gradient.elements);
      for (std::size_t i = 0; i < gradient.elements; ++i) value(weights.size() - 1, i) = static_cast<float>(i % 13) - 6;
    }
  }
  float& value(std::size_t gradient, std::size_t i) { return static_cast<float*>(weights[gradient].data)[i]; }
  void update(const Buffer& gradients, std::size_t gradient) {
    auto* g = static_cast<float*>(gradients.data);
    for (std::size_t i = 0; i < gradients.count; ++i) {
      velocity[gradient][i] = kMomentum * velocity[gradient][i] + g[i];
      value(gradient, i) -= kRate * velocity[gradient][i];
      g[i] = 0;
    }
  }
  [[nodiscard]] std::vector<std::vector<float>> all() const {
    std::vector<std::vector<float>> result;
    for (const Buffer& buffer : weights) {
      const auto* data = static_cast<const float*>(buffer.data);
      result.emplace_back(data, data + buffer.count);
    }
    return result;
  }

  std::vector<float> memory = std::vector<float>(6000), apart = std::vector<float>(6000);
  std::vector<Buffer> weights;
  std::vector<std::vector<float>> velocity;
};

/// Adds to the gradient, as a backward pass does: what a step leaves there matters.
inline void add_gradient(const Buffer& gradient, int rank, int step, std::size_t index) {
  auto* elements = static_cast<float*>(gradient.data);
  for (std::size_t i = 0; i < gradient.count; ++i)
    elements[i] += static_cast<float>((rank + 2) * (step + 1)) / static_cast<float>(3 * index + 7 + i % 11);
}

/// A replica trained by a synchronizer.
class Trained {
 public:
  Trained(Group& group, SynchronizerOptions options) : group_(group), replica(group.rank()) {
    options.weights = replica.weights;
    if (!options.update)
      options.update = [this](std::size_t first, std::size_t last) {
        ++updates;
        for (std::size_t i = first; i <= last; ++i) replica.update(synchronizer->gradient(i), i);
      };
    synchronizer = std::make_unique<Synchronizer>(group, kModel, options);
  }
  void backward(int step, std::size_t without = SIZE_MAX) {
    for (std::size_t i = kModel.size(); i-- > 0;) {
      if (i == without) continue;
      add_gradient(synchronizer->gradient(i), group_.rank(), step, i);
      synchronizer->ready(i);
    }
  }

 private:
  Group& group_;

 public:
  Replica replica;
  int updates = 0;
  std::unique_ptr<Synchronizer> synchronizer;
};

enum class Order : std::uint8_t { serial, overlapped };

inline void train(Trained& trained, int steps, Order order) {
  for (int step = 0; step < steps; ++step) {
    if (step > 0 && order == Order::overlapped) {
      for (std::size_t i = 0; i < kModel.size(); ++i) trained.synchronizer->wait(i);
      trained.synchronizer->wait();
    }
    trained.backward(step);
    if (order == Order::serial) trained.synchronizer->wait();
  }
  if (order == Order::overlapped) trained.synchronizer->wait();
}

}  // namespace syncopate::test
