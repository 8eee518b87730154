// Codecs under measure: encoding and decoding on one core without a network, in units of one read of the input.
#pragma once

#include <string>

#include "command.hpp"

namespace syncopate::tools::bench {

struct CodecRequest {
  std::string codecs = "all";  ///< comma-separated; "all": the shelf
  std::string contenders = "all";
  std::string elements = "16Mi";
  std::string feedback = "none";
  int rounds = 9;
};

void declare(CLI::App& app, CodecRequest& request);

/// Runs all rounds, codecs and contenders interleaved; the exit code. Throws Misuse before anything is measured.
[[nodiscard]] int run_codec_benchmark(const CodecRequest& request, const Session& session);

}  // namespace syncopate::tools::bench
