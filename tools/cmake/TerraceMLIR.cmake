# Finds Debian's LLVM/MLIR 22.1 and works around what its packages lack.
# terrace_library(), terrace_tool() and terrace_tablegen() are the only ways our CMake files touch LLVM.

find_program(LLVM_CONFIG NAMES llvm-config-22)
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "LLVM 22 was not found. Install it with:\n"
    "  apt-get install llvm-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools clang-22 liblld-22-dev\n"
    "(tools/dev does this), or build the runtime alone with -DTERRACE_RUNTIME_ONLY=ON.")
endif()
execute_process(COMMAND ${LLVM_CONFIG} --prefix OUTPUT_VARIABLE LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)

# Not on CMake's default path. Ask for 22.1: the package's version file refuses a plain 22.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS "${LLVM_PREFIX}/lib/cmake/mlir")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_RUNTIME_OUTPUT_INTDIR "${CMAKE_BINARY_DIR}/bin")
set(LLVM_LIBRARY_OUTPUT_INTDIR "${CMAKE_BINARY_DIR}/lib")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# One precompiled header for all compiler code: it turns 24 s a file into 4 s.
add_library(TerracePCH OBJECT "${CMAKE_CURRENT_LIST_DIR}/TerracePCH.cpp")
target_include_directories(TerracePCH SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
target_precompile_headers(TerracePCH PRIVATE "${CMAKE_CURRENT_LIST_DIR}/TerracePCH.h")
terrace_target_options(TerracePCH COMPILER)

function(terrace_compiler_target target)
  target_include_directories(${target} SYSTEM PRIVATE ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_include_directories(${target} PRIVATE
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/lib" "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_BINARY_DIR}" "${PROJECT_BINARY_DIR}/lib")
  target_precompile_headers(${target} REUSE_FROM TerracePCH)
  # Executables would get -fPIE, and gcc takes a precompiled header with the same setting only.
  target_compile_options(${target} PRIVATE -fPIC)
  terrace_target_options(${target} COMPILER)
endfunction()

# terrace_library(<name> SOURCES ... [DEPENDS tablegen-targets...] [LINK libs...])
# A static library of ours. MLIR and LLVM are linked as the two shared libraries only, never mixed with static ones.
function(terrace_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  terrace_compiler_target(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# terrace_tool(<name> SOURCES ... [LINK libs...]): an executable in build/bin.
function(terrace_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  terrace_compiler_target(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
endfunction()

# terrace_tablegen(<target> <file.td> <output> <generator args...> [<output> -- ...]) is mlir_tablegen with our
# include path; call it once per output, then terrace_tablegen_target(<target>).
macro(terrace_tablegen td output)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${output} ${ARGN} -I${PROJECT_SOURCE_DIR} EXTRA_INCLUDES ${MLIR_INCLUDE_DIRS})
endmacro()
macro(terrace_tablegen_target target)
  add_public_tablegen_target(${target})
endmacro()
