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

/// The value of SYNCOPATE_PYTHON, else python3.
[[nodiscard]] std::string python();

/// The file that SYNCOPATE_CONTENDER names, else bench/contender/pytorch.py; throws Misuse where there is none.
[[nodiscard]] std::string contender_program();

/// The command of a rank. `meeting`: a file that all ranks reach and that does not exist yet; `words`: the model, its
/// data and its batch, as options of `syncopate train`.
[[nodiscard]] std::vector<std::string> pytorch_program(const StepVariant& variant, const std::string& meeting,
                                                       const std::vector<std::string>& words);

}  // namespace syncopate::tools::bench
