// Trains your own libtorch model on all ranks: gradients are averaged while the backward pass still runs.
#include <torch/torch.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "syncopate/syncopate.hpp"

namespace {

constexpr int kSteps = 200;
constexpr int kSamples = 64;  // per rank and step

/// Reports to the synchronizer that gradient i is complete. Runs on: autograd's thread.
class Ready final : public torch::autograd::PostAccumulateGradHook {
 public:
  Ready(syncopate::Synchronizer& synchronizer, std::size_t i) : synchronizer_(synchronizer), i_(i) {}
  void operator()(const torch::autograd::Variable&) override { synchronizer_.ready(i_); }

 private:
  syncopate::Synchronizer& synchronizer_;
  std::size_t i_;
};

std::vector<syncopate::Gradient> gradients_of(const torch::nn::Module& model) {
  std::vector<syncopate::Gradient> gradients;
  for (const auto& parameter : model.named_parameters())
    gradients.push_back({.name = parameter.key(), .elements = static_cast<std::size_t>(parameter.value().numel())});
  return gradients;
}

/// Broadcasts rank 0's initial weights to all ranks.
void share_weights(syncopate::Group& group, const torch::nn::Module& model) {
  std::vector<syncopate::Buffer> weights;
  for (const torch::Tensor& parameter : model.parameters())
    weights.emplace_back(parameter.data_ptr(), static_cast<std::size_t>(parameter.numel()), syncopate::DType::f32);
  syncopate::broadcast_all(group, weights);
}

/// Moves the gradients into the synchronizer's memory, and reports each one as soon as autograd has completed it.
void attach(syncopate::Synchronizer& synchronizer, const torch::nn::Module& model) {
  const std::vector<torch::Tensor> parameters = model.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mutable_grad() =
        torch::from_blob(synchronizer.gradient(i).data, parameters[i].sizes(), torch::kFloat32);
    torch::autograd::impl::set_post_acc_grad_hooks(parameters[i], std::make_unique<Ready>(synchronizer, i));
  }
}

void train(syncopate::Group& group) {
  torch::nn::Sequential model(torch::nn::Linear(1, 32), torch::nn::Tanh(), torch::nn::Linear(32, 1));
  share_weights(group, *model);
  syncopate::Synchronizer synchronizer(group, gradients_of(*model));
  attach(synchronizer, *model);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  torch::manual_seed(std::uint64_t{1} + static_cast<std::uint64_t>(group.rank()));  // every rank draws its own points
  float loss = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const torch::Tensor x = 6 * torch::rand({kSamples, 1}) - 3;
    const torch::Tensor error = torch::mse_loss(model->forward(x), torch::sin(x));
    optimizer.zero_grad(/*set_to_none=*/false);  // the memory of the gradients must stay
    error.backward();                            // each gradient is sent as soon as it is complete
    synchronizer.wait();                         // now all gradients hold the average over the ranks
    optimizer.step();                            // equal on every rank, so weights stay equal
    loss = error.item<float>();
  }
  double weights = 0;
  for (const torch::Tensor& parameter : model->parameters()) weights += parameter.abs().sum().item<double>();
  std::printf("rank %d of %d: loss %.4f, sum of weights %.12g\n", group.rank(), group.size(), loss, weights);
}

}  // namespace

int main() try {
  torch::set_num_threads(1);  // ranks of one host share its cores
  const auto group = syncopate::Group::join();
  train(*group);
  return 0;
} catch (const std::exception& error) {  // the text names the cause, such as a lost rank or a wrong setting
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
