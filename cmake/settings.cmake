# Compiler settings every target shares: C++20, warnings, sanitizers, ccache where it is installed.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(SYNCOPATE_CCACHE ccache)
if(SYNCOPATE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths are hashed relative to the source tree, so that another clone of the same commit gets hits.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_PCH_EXTSUM=1 CCACHE_SLOPPINESS=time_macros,include_file_mtime,include_file_ctime ${SYNCOPATE_CCACHE})
endif()

add_library(syncopate_settings INTERFACE)
target_compile_options(syncopate_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Wno-missing-field-initializers)  # aggregates of options leave out what keeps its default
# GCC 12 misreads strings in aggregates that it has inlined (its bug 105329 and the like); later ones do not.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(syncopate_settings INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
# Same bits on every processor: no product is fused into a sum where the instruction set happens to offer it.
target_compile_options(syncopate_settings INTERFACE -ffp-contract=off)
if(SYNCOPATE_SANITIZE)
  # Sanitizer builds keep asserts and frame pointers, for useful reports. They need only line tables as debug
  # information, and -O1 compiles the instrumented code in half the time of -O2.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${SYNCOPATE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(SYNCOPATE_SANITIZE MATCHES undefined)
    # AddressSanitizer reports what these two find when the program reads or writes there; they cost a fifth of the time
    # to compile.
    add_compile_options(-fno-sanitize=null,object-size)
  endif()
  add_link_options(-fsanitize=${SYNCOPATE_SANITIZE})
endif()
