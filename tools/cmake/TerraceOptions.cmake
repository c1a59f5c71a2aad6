# Flags shared by all of our targets, applied by terrace_target_options(); nothing global but the language standard.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()

# terrace_target_options(<target> RUNTIME|COMPILER)
#
# RUNTIME   optimised in every preset, for the smallest CPU that Terrace supports (x86-64-v3: the numerics need
#           hardware fma), with contraction off: an fma is written where one is meant.
# COMPILER  optimised lightly in the dev preset, since compile time is what matters there.
function(terrace_target_options target kind)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-unused-parameter $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi>)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # libstdc++ 12 uses its own deprecated get_temporary_buffer inside std::stable_sort.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  endif()
  if(TERRACE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(kind STREQUAL "RUNTIME")
    target_compile_options(${target} PRIVATE -march=x86-64-v3 -ffp-contract=off -fno-math-errno)
    if(NOT CMAKE_BUILD_TYPE)
      target_compile_options(${target} PRIVATE -O2 -g1)
    endif()
  elseif(NOT CMAKE_BUILD_TYPE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  if(TERRACE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${TERRACE_SANITIZE} -fno-omit-frame-pointer -g1)
    target_link_options(${target} PUBLIC -fsanitize=${TERRACE_SANITIZE})
  endif()
endfunction()
