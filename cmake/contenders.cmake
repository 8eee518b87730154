# The contenders of `syncopate bench`: one program for each peer library that is installed.
# MPI programs are compiled by the library's own wrapper, so that Open MPI and MPICH can stand side by side.
find_package(Threads REQUIRED)
find_path(SYNCOPATE_GLOO_INCLUDE gloo/rendezvous/file_store.h)
find_library(SYNCOPATE_GLOO_LIBRARY gloo)
if(SYNCOPATE_GLOO_INCLUDE AND SYNCOPATE_GLOO_LIBRARY)
  add_executable(contender_gloo contender/gloo.cpp)
  target_include_directories(contender_gloo SYSTEM PRIVATE ${SYNCOPATE_GLOO_INCLUDE})
  target_link_libraries(contender_gloo PRIVATE syncopate_settings ${SYNCOPATE_GLOO_LIBRARY} Threads::Threads)
  set(SYNCOPATE_HAVE_GLOO "yes, ${SYNCOPATE_GLOO_LIBRARY}")
else()
  set(SYNCOPATE_HAVE_GLOO "no: run scripts/contenders")
endif()

find_package(PkgConfig QUIET)  # gRPC's own package file would ask for protobuf, which nothing here uses
if(PkgConfig_FOUND)
  pkg_check_modules(SYNCOPATE_GRPC QUIET IMPORTED_TARGET grpc++)
endif()
if(TARGET PkgConfig::SYNCOPATE_GRPC)
  add_executable(contender_grpc contender/grpc.cpp)
  target_link_libraries(contender_grpc PRIVATE syncopate syncopate_settings PkgConfig::SYNCOPATE_GRPC)
endif()

# Builds bin/contender_NAME from contender/SOURCE by an MPI's compiler wrapper; more words go to the linker.
function(syncopate_add_mpi_contender name wrapper source)
  set(folder ${PROJECT_SOURCE_DIR}/bench/contender)
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/contender_${name})
  add_custom_command(OUTPUT ${program}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    COMMAND ${wrapper} -std=c++20 -O3 -DNDEBUG -o ${program} ${folder}/${source} ${ARGN}
    DEPENDS ${folder}/${source} ${folder}/mpi_main.hpp ${folder}/measure.hpp ${folder}/pattern.hpp
    COMMENT "Building contender ${name}" VERBATIM)
  add_custom_target(contender_${name} ALL DEPENDS ${program})
endfunction()

function(syncopate_mpi_contender flavour)
  find_program(SYNCOPATE_MPICXX_${flavour} NAMES mpicxx.${flavour})
  set(wrapper ${SYNCOPATE_MPICXX_${flavour}})
  if(NOT wrapper)  # a system with one MPI calls its wrapper plainly mpicxx; only Open MPI's knows --showme
    find_program(SYNCOPATE_MPICXX mpicxx)
    if(SYNCOPATE_MPICXX)
      execute_process(COMMAND ${SYNCOPATE_MPICXX} --showme:version RESULT_VARIABLE other OUTPUT_QUIET ERROR_QUIET)
      if((flavour STREQUAL "openmpi" AND other EQUAL 0) OR (flavour STREQUAL "mpich" AND NOT other EQUAL 0))
        set(wrapper ${SYNCOPATE_MPICXX})
      endif()
    endif()
  endif()
  if(NOT wrapper)
    set(found_${flavour} "no: run scripts/contenders" PARENT_SCOPE)
    return()
  endif()
  set(source ${PROJECT_SOURCE_DIR}/bench/contender)
  # A wrapper comes with the library's programs, its headers in a package of their own.
  execute_process(COMMAND ${wrapper} -std=c++20 -fsyntax-only ${source}/mpi.cpp RESULT_VARIABLE unusable OUTPUT_QUIET ERROR_QUIET)
  if(NOT unusable EQUAL 0)
    set(found_${flavour} "no: ${wrapper} finds no headers; run scripts/contenders" PARENT_SCOPE)
    return()
  endif()
  syncopate_add_mpi_contender(${flavour} ${wrapper} mpi.cpp)
  set(found_${flavour} "yes, ${wrapper}" PARENT_SCOPE)
endfunction()
syncopate_mpi_contender(openmpi)
syncopate_mpi_contender(mpich)
set(SYNCOPATE_HAVE_OPENMPI ${found_openmpi})
set(SYNCOPATE_HAVE_MPICH ${found_mpich})

# Intel MPI and oneCCL come from Intel's Python packages, in a virtual environment of the build folder.
set(intel ${PROJECT_SOURCE_DIR}/build/contenders)
set(intel_wrapper ${CMAKE_COMMAND} -E env I_MPI_ROOT=${intel} PATH=${intel}/bin:$ENV{PATH} ${intel}/bin/mpicxx)
if(EXISTS ${intel}/bin/mpicxx)
  syncopate_add_mpi_contender(intelmpi "${intel_wrapper}" mpi.cpp)
  if(EXISTS ${intel}/include/oneapi/ccl.hpp)
    syncopate_add_mpi_contender(oneccl "${intel_wrapper}" oneccl.cpp -lccl ${intel}/lib/libintlc.so.5)
  endif()
endif()
