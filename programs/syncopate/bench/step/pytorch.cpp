// Contenders of a step that PyTorch trains: DistributedDataParallel and divided optimizers, over Gloo and this library.
#include "bench/step/pytorch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "syncopate/error.hpp"
#include "syncopate/tooling/names.hpp"
#include "syncopate/tooling/units.hpp"

namespace syncopate::tools::bench {

namespace {

/// `codec`: what DDP's hook does, by the name that it has here; empty: this library's hook or class, with any codec.
struct Contender {
  std::string_view name, codec;
  bool has_size = true;  ///< of DDP's buckets
  std::string_view exchange = "allreduce";
};
constexpr std::array kPytorch{Contender{"ddp-gloo", "none"},
                              Contender{"ddp-gloo-fp16", "fp16"},
                              Contender{"ddp-gloo-powersgd", "low_rank:4", false},
                              Contender{"ddp-syncopate", "none"},
                              Contender{"ddp-syncopate-hook", ""},
                              Contender{"syncopate-ddp", ""},
                              Contender{"zero-gloo", "none"},
                              Contender{"syncopate-sharded", "none", false, "sharded"}};

/// The contender of NAME, or of NAME:MIB with the size of DDP's buckets.
const Contender& contender_of(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const bool has_size = colon != std::string::npos;
  const auto* const found = std::ranges::find(kPytorch, name, &Contender::name);
  if (found == kPytorch.end()) {
    std::vector<std::string_view> names;
    for (const Contender& each : kPytorch) names.push_back(each.name);
    throw Misuse(unknown_name("contender of a step", name, names));
  }
  if (has_size && (!found->has_size || parse_bytes(text.substr(colon + 1) + "MiB") == 0))
    throw Misuse(
        fmt::format("--contenders {}; allowed after a colon: MiB of DDP's buckets, from 1, and none for "
                    "ddp-gloo-powersgd, which has one bucket, and syncopate-sharded, which chooses them",
                    text));
  return *found;
}

std::string value_or(const char* variable, const char* otherwise) {
  const char* const named = std::getenv(variable);
  return named != nullptr && *named != '\0' ? named : otherwise;
}

}  // namespace

std::vector<StepVariant> pytorch_variants(const std::vector<std::string>& contenders,
                                          const std::vector<std::string>& codecs) {
  std::vector<StepVariant> variants;
  for (const std::string& name : contenders) {
    const Contender& contender = contender_of(name);
    const std::string own(contender.codec), exchange(contender.exchange);
    for (const std::string& codec : own.empty() ? codecs : std::vector{own})
      variants.push_back({.policy = "", .codec = codec, .exchange = exchange, .contender = name});
  }
  return variants;
}

std::string python() { return value_or("SYNCOPATE_PYTHON", "python3"); }

std::string contender_program() {
  const std::string program = value_or("SYNCOPATE_CONTENDER", "bench/contender/pytorch.py");
  if (std::filesystem::is_regular_file(program)) return program;
  throw Misuse(
      fmt::format("bench step --contenders: there is no file {}; start it in the folder of Syncopate's sources, or let "
                  "SYNCOPATE_CONTENDER name bench/contender/pytorch.py of them",
                  program));
}

std::vector<std::string> pytorch_program(const StepVariant& variant, const std::string& meeting,
                                         const std::vector<std::string>& words) {
  std::vector<std::string> program{python(),  contender_program(), "--contender", variant.contender,
                                   "--codec", variant.codec,       "--meeting",   meeting};
  program.insert(program.end(), words.begin(), words.end());
  return program;
}

}  // namespace syncopate::tools::bench
