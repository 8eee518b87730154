// The library's version, from the build.
#include "syncopate/version.hpp"

namespace syncopate {

std::string_view version() noexcept { return SYNCOPATE_VERSION; }

}  // namespace syncopate
