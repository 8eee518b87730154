// Properties by RapidCheck, from a fixed seed: a test that gates a change draws the same values in every run.
#pragma once

#include <rapidcheck.h>

#include <cstdlib>

namespace syncopate::test {

/// RapidCheck reads RC_PARAMS when the first property is checked. A seed that is given there counts (`scripts/soak`).
inline const bool kPropertiesAreFixed = ::setenv("RC_PARAMS", "seed=1", 0) == 0;

}  // namespace syncopate::test
