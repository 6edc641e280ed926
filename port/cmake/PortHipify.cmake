# port_hipify_target(NAME SOURCE_DIR dir OUTPUT_DIR dir [ROCM release] [OPTIONS option…])
#
# Adds the target NAME, which translates the CUDA sources below SOURCE_DIR into HIP sources at the
# same relative places below OUTPUT_DIR, with `python -m port.hipify`. The translated files may be
# named as sources of other targets and commands: they are made when a source has changed, and stay
# as they are, date included, when their content does. Whatever port.hipify reports fails the build.
#
# ROCM is the release whose names may be used (6.4 where it is not given); OPTIONS go to
# port.hipify as they are. Include this file from the folder that `python -m port.hipify --cmake-dir`
# prints; Python_EXECUTABLE, as find_package(Python) sets it, is the interpreter that has `port`.

function(port_hipify_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE_DIR;OUTPUT_DIR;ROCM" "OPTIONS")
  if(NOT arg_SOURCE_DIR OR NOT arg_OUTPUT_DIR OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "port_hipify_target(NAME SOURCE_DIR dir OUTPUT_DIR dir [ROCM release] "
                        "[OPTIONS option…])")
  endif()
  if(NOT Python_EXECUTABLE)
    message(FATAL_ERROR "port_hipify_target: find_package(Python) comes first")
  endif()
  cmake_path(ABSOLUTE_PATH arg_SOURCE_DIR BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  cmake_path(ABSOLUTE_PATH arg_OUTPUT_DIR BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  if(NOT IS_DIRECTORY "${arg_SOURCE_DIR}")
    message(FATAL_ERROR "port_hipify_target: SOURCE_DIR ${arg_SOURCE_DIR} is no folder")
  endif()

  file(GLOB_RECURSE names CONFIGURE_DEPENDS LIST_DIRECTORIES false RELATIVE "${arg_SOURCE_DIR}"
       "${arg_SOURCE_DIR}/*")
  list(TRANSFORM names PREPEND "${arg_SOURCE_DIR}/" OUTPUT_VARIABLE inputs)
  list(TRANSFORM names PREPEND "${arg_OUTPUT_DIR}/" OUTPUT_VARIABLE outputs)
  set(release "")
  if(arg_ROCM)
    set(release --rocm "${arg_ROCM}")
  endif()
  # The stamp tells when the last run was: an unchanged file keeps its date, and would look stale.
  set(stamp "${CMAKE_CURRENT_BINARY_DIR}/${name}.stamp")
  add_custom_command(
    OUTPUT "${stamp}"
    BYPRODUCTS ${outputs}
    COMMAND "${Python_EXECUTABLE}" -m port.hipify "${arg_SOURCE_DIR}" -o "${arg_OUTPUT_DIR}"
            ${release} ${arg_OPTIONS}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS ${inputs}
    COMMENT "Translating ${arg_SOURCE_DIR} to HIP"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${stamp}")
endfunction()
