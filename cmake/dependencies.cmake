# The libraries the project stands on, found once for all folders.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(hwy REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG QUIET)
find_package(JPEG QUIET)  # libjpeg-turbo: older libraries of that name cannot leave a byte between pixels
if(TARGET JPEG::JPEG)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES JPEG::JPEG)
  check_cxx_source_compiles("#include <cstdio>
#include <jpeglib.h>
int main() { return JCS_EXT_RGBX == JCS_UNKNOWN || &jpeg_skip_scanlines == nullptr; }" SYNCOPATE_JPEG_IS_TURBO)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
set(SYNCOPATE_PICTURES "")
if(TARGET JPEG::JPEG AND SYNCOPATE_JPEG_IS_TURBO)
  list(APPEND SYNCOPATE_PICTURES JPEG)
endif()
if(TARGET PNG::PNG)
  list(APPEND SYNCOPATE_PICTURES PNG)
endif()
