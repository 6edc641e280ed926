# monarch_add_module(NAME SOURCES file… [LIBRARIES target…] [PRECOMPILE header…])
#
# A nanobind module of the package `monarch`: stable ABI where Python has it, one exported symbol,
# a generated stub beside it, both installed. PRECOMPILE names headers that most sources include,
# beside nanobind's own.

find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module
             OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED)

# Builds run in environments with random names; none of them belongs into a wheel.
cmake_path(GET nanobind_ROOT PARENT_PATH _nanobind_package)
set(_module_maps "-ffile-prefix-map=${_nanobind_package}=nanobind"
                 "-ffile-prefix-map=${Python_INCLUDE_DIRS}=python")

set(MONARCH_STUB_LIBRARIES "" CACHE STRING "Folders of stand-ins with which stubs are made")

function(monarch_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;PRECOMPILE")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "monarch_add_module(NAME SOURCES file… [LIBRARIES target…] "
                        "[PRECOMPILE header…])")
  endif()
  nanobind_add_module(${name} STABLE_ABI NB_STATIC NB_SUPPRESS_WARNINGS NB_DOMAIN monarch
                        ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} monarch_warnings)
  target_compile_options(${name} PRIVATE ${_module_maps})
  target_precompile_headers(
    ${name} PRIVATE <nanobind/nanobind.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>
                    ${arg_PRECOMPILE})
  foreach(library IN ITEMS nanobind-static nanobind-static-abi3)
    if(TARGET ${library})
      target_compile_options(${library} PRIVATE ${_module_maps})
      set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 4)
    endif()
  endforeach()

  set(script "${CMAKE_CURRENT_BINARY_DIR}/${name}.exports")
  file(CONFIGURE OUTPUT "${script}" CONTENT "{ global: PyInit_@name@; local: *; };\n" @ONLY)
  target_link_options(${name} PRIVATE "-Wl,--version-script=${script}")
  set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS "${script}")

  # The stub is made from the module itself. A GPU runtime need not be there (or may not run here):
  # an empty library with the same soname and symbols takes its place while the module is read.
  set(stub "${CMAKE_CURRENT_BINARY_DIR}/${name}.pyi")
  set(absent "${CMAKE_CURRENT_BINARY_DIR}/${name}.absent")
  add_custom_command(
    OUTPUT "${stub}"
    COMMAND "${CMAKE_COMMAND}" -E env --modify
            "PYTHONPATH=path_list_prepend:${CMAKE_SOURCE_DIR}" PYTHONDONTWRITEBYTECODE=1
            "${Python_EXECUTABLE}" -m port.build.stub "$<TARGET_FILE:${name}>" --compiler
            "${CMAKE_CXX_COMPILER}" --generator "${_nanobind_package}/stubgen.py" --work "${absent}"
            --output "${stub}"
    DEPENDS ${name} "${CMAKE_SOURCE_DIR}/port/build/stub.py"
    COMMENT "Generating ${name}.pyi"
    VERBATIM)
  add_custom_target(${name}_stub ALL DEPENDS "${stub}")

  install(TARGETS ${name} LIBRARY DESTINATION monarch)
  install(FILES "${stub}" DESTINATION monarch)
endfunction()
