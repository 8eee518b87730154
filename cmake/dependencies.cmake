# The libraries the project stands on, found once for all folders.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(hwy REQUIRED)
