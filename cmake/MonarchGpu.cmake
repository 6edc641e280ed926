# The GPU toolchain: the variables below come from port.build, and from nowhere else.
#
#   MONARCH_GPU_COMPILER   nvcc or hipcc
#   MONARCH_GPU_INCLUDE    the folder of the runtime's headers
#   MONARCH_GPU_LIBRARY    libcudart_static.a or libamdhip64.so
#   MONARCH_GPU_VERSION    the toolkit's version
#   GPU_ARCHITECTURES      sm_90;… or gfx942;…
#
# Gives the target `monarch_gpu_runtime` and the function
#   monarch_add_kernels(TARGET SOURCES file… [INCLUDES folder…])
#
# CMake's own CUDA and HIP languages, and find_package(hip), are not used: on Debian 12 both fail
# without a complete ROCm below /usr.

set(GPU_ARCHITECTURES "" CACHE STRING "GPU architectures, such as sm_90;sm_100 or gfx90a;gfx942")

if(GPU_PLATFORM STREQUAL "cpu")
  return()
elseif(GPU_PLATFORM STREQUAL "cuda")
  set(_spelling "^sm_[0-9]+[af]?$")
  set(_header "cuda_runtime_api.h")
  set(_example "sm_90")
elseif(GPU_PLATFORM STREQUAL "rocm")
  set(_spelling "^gfx[0-9a-z-]+(:[a-z]+[+-])*$")
  set(_header "hip/hip_runtime_api.h")
  set(_example "gfx942")
else()
  message(FATAL_ERROR "GPU_PLATFORM=${GPU_PLATFORM}: wanted cpu, cuda or rocm")
endif()

if(NOT GPU_ARCHITECTURES)
  message(FATAL_ERROR "GPU_ARCHITECTURES is empty: name what to build for, such as ${_example}")
endif()
foreach(_name IN LISTS GPU_ARCHITECTURES)
  if(NOT _name MATCHES "${_spelling}")
    message(FATAL_ERROR "GPU_ARCHITECTURES: ${_name} is no architecture of ${GPU_PLATFORM}; "
                        "wanted names such as ${_example}")
  endif()
endforeach()

foreach(_variable IN ITEMS MONARCH_GPU_COMPILER MONARCH_GPU_INCLUDE MONARCH_GPU_LIBRARY)
  if(NOT EXISTS "${${_variable}}")
    message(FATAL_ERROR "${_variable}=\"${${_variable}}\" does not exist. Build with pip or "
                        "python -m port.build, which find or fetch the toolchain and pass it here.")
  endif()
endforeach()
if(NOT EXISTS "${MONARCH_GPU_INCLUDE}/${_header}")
  message(FATAL_ERROR "${_header} is missing; looked with -I${MONARCH_GPU_INCLUDE}. "
                      "Install the toolkit's development headers.")
endif()

add_library(monarch_gpu_runtime INTERFACE)
set(_gpu_definitions "")
if(NOT MONARCH_GPU_INCLUDE STREQUAL "/usr/include")
  target_include_directories(monarch_gpu_runtime SYSTEM INTERFACE "${MONARCH_GPU_INCLUDE}")
endif()
target_link_libraries(monarch_gpu_runtime INTERFACE "${MONARCH_GPU_LIBRARY}")
if(GPU_PLATFORM STREQUAL "cuda")
  find_package(Threads REQUIRED)
  target_link_libraries(monarch_gpu_runtime INTERFACE ${CMAKE_DL_LIBS} Threads::Threads rt)
else()
  # ROCm 5 headers ask for the second name, ROCm 6 and later for the first.
  target_compile_definitions(
    monarch_gpu_runtime INTERFACE __HIP_PLATFORM_AMD__=1 __HIP_PLATFORM_HCC__=1)
  # Deprecated names are the price of one source for five releases; each exists in all of them.
  target_compile_options(monarch_gpu_runtime INTERFACE -Wno-deprecated-declarations)
  # The runtime's own dependencies are not ours to resolve, and lie outside the linker's folders.
  target_link_options(monarch_gpu_runtime INTERFACE -Wl,--allow-shlib-undefined)
endif()

function(_monarch_kernel_command out source object depfile includes)
  # clang names symbols after a hash of the source's path, unless it is given another name.
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE identity)
  string(MAKE_C_IDENTIFIER "${identity}" identity)
  list(TRANSFORM includes PREPEND "-I")
  if(GPU_PLATFORM STREQUAL "cuda")
    set(flags "")
    foreach(name IN LISTS GPU_ARCHITECTURES)
      string(REPLACE "sm_" "compute_" virtual "${name}")
      list(APPEND flags "-gencode=arch=${virtual},code=${name}")
    endforeach()
    string(REPLACE ";" "," host "${MONARCH_PREFIX_MAPS}")
    set(command "${MONARCH_GPU_COMPILER}" -ccbin "${MONARCH_GPU_HOST_COMPILER}" -std=c++20 -O3
                --expt-relaxed-constexpr ${flags} "-Xcompiler=-fPIC,-fvisibility=hidden,${host}")
  else()
    list(TRANSFORM GPU_ARCHITECTURES PREPEND "--offload-arch=" OUTPUT_VARIABLE flags)
    set(command "${CMAKE_COMMAND}" -E env HIP_PLATFORM=amd "${MONARCH_GPU_COMPILER}" -x hip
                -std=c++20 -O3 -Wno-deprecated-declarations ${flags} -fPIC -fvisibility=hidden -Wall -Wextra
                "-cuid=${identity}" ${MONARCH_PREFIX_MAPS})
  endif()
  set(${out} ${command} ${includes} -MMD -MF "${depfile}" -MT "${object}" -c "${source}" -o
             "${object}" PARENT_SCOPE)
endfunction()

# Compiles each SOURCE with the GPU compiler and adds the object to TARGET.
function(monarch_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;INCLUDES")
  if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "monarch_add_kernels(TARGET SOURCES file… [INCLUDES folder…])")
  endif()
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_path(GET source FILENAME name)
    # Relative names in the command keep the objects free of the build folder's name.
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels/${name}.o")
    _monarch_kernel_command(command "${source}" "${object}" "${object}.d" "${arg_INCLUDES}")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${CMAKE_CURRENT_BINARY_DIR}/${target}.kernels"
      COMMAND ${command}
      MAIN_DEPENDENCY "${source}"
      DEPENDS "${MONARCH_GPU_COMPILER}"
      DEPFILE "${object}.d"
      COMMENT "Compiling ${name} for ${GPU_ARCHITECTURES}"
      VERBATIM)
    target_sources(${target} PRIVATE "${object}")
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  endforeach()
endfunction()
