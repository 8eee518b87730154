// The library's version, as the build states it.
#include "syncopate/version.hpp"

namespace syncopate {

std::string_view version() noexcept { return SYNCOPATE_VERSION; }

}  // namespace syncopate
