# The libraries the project stands on, found once for all folders.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(hwy REQUIRED)
find_package(PkgConfig QUIET)  # gRPC, for the parameter server: its own package file would ask for protobuf, which nothing here uses
if(PkgConfig_FOUND)
  pkg_check_modules(SYNCOPATE_GRPC QUIET IMPORTED_TARGET grpc++)
endif()
