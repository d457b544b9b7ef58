# Compiler flags that hold for every target of the project.
add_library(hive_options INTERFACE)
target_compile_options(hive_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(hive_options INTERFACE -Wno-unknown-warning-option -Wno-shadow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlapping copies inside std::string that cannot happen (GCC bug 105651, mended in 13).
  target_compile_options(hive_options INTERFACE -Wno-restrict)
endif()
if(HIVE_WERROR)
  target_compile_options(hive_options INTERFACE -Werror)
endif()
if(HIVE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of GCC 12: Asio's fences are fine for what it uses them for, and instrumented code confuses the
  # analysis of initialisation.
  target_compile_options(hive_options INTERFACE -Wno-tsan -Wno-maybe-uninitialized)
endif()
if(HIVE_SANITIZE)
  target_compile_options(hive_options INTERFACE -fsanitize=${HIVE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(hive_options INTERFACE -fsanitize=${HIVE_SANITIZE})
else()
  target_compile_definitions(hive_options INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:_FORTIFY_SOURCE=2>)
  target_compile_options(hive_options INTERFACE -fstack-protector-strong)
  target_link_options(hive_options INTERFACE -Wl,-z,relro,-z,now)
endif()
if(HIVE_FUZZ)
  target_compile_options(hive_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_compile_definitions(hive_options INTERFACE
  BOOST_ASIO_NO_DEPRECATED
  BOOST_ASIO_HAS_STD_INVOKE_RESULT
  HIVE_VERSION="${PROJECT_VERSION}")
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
find_program(HIVE_CCACHE ccache)
if(HIVE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HIVE_CCACHE})
endif()
