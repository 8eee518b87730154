# Finds a Python with nanobind: the one that scripts/install --python put into the build tree, or that which builds a wheel.
if(NOT SYNCOPATE_PYTHON)
  return()
endif()
if(NOT SKBUILD AND NOT Python_EXECUTABLE)  # -DPython_EXECUTABLE names another one
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/build/python/installed.txt)  # the last file that the script writes
    return()
  endif()
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/python/bin/python)
endif()
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)
set(SYNCOPATE_HAVE_PYTHON ON)
