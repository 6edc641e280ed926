# Settings of all C++ code: standard, visibility, and nothing of the machine in the output.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
# No source is a module, and scanning for them takes a tool that zig does not have.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Libraries are found by the loader's own rules or opened by our code: no path of the build machine.
set(CMAKE_SKIP_RPATH ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(MONARCH_PREFIX_MAPS
    "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=."
    "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build")

add_compile_options(${MONARCH_PREFIX_MAPS})

# Warnings for our own code; bindings and generated code opt in with this target as well.
add_library(monarch_warnings INTERFACE)
target_compile_options(
  monarch_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>)
