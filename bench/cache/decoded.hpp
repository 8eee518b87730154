// The decoded tier compared with the encoded one, on a set of pictures.
#pragma once

#include <string>

/// Ranks as threads take epochs of the set's training part, with and without decoded forms in turn. Prints one JSON row
/// for each epoch after the first, then the medians. Pictures have `side` pixels each way.
void compare_tiers(const std::string& folder, int side, int rounds);
