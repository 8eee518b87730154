// Contenders of a step that PyTorch trains: their names, and the program of one rank.
#pragma once

#include <string>
#include <vector>

#include "bench/step/rows.hpp"

namespace syncopate::tools::bench {

/// The variants of named contenders; those with the library's hook once for every codec.
/// Throws Misuse with what is allowed.
[[nodiscard]] std::vector<StepVariant> pytorch_variants(const std::vector<std::string>& contenders,
                                                        const std::vector<std::string>& codecs);

/// What SYNCOPATE_PYTHON says, else python3.
[[nodiscard]] std::string python();

/// What a rank executes. `meeting`: a file that all ranks reach and that is not there yet; `words`: the model, its data
/// and its batch, in options of `syncopate train`.
[[nodiscard]] std::vector<std::string> pytorch_program(const StepVariant& variant, const std::string& meeting,
                                                       const std::vector<std::string>& words);

}  // namespace syncopate::tools::bench
