# The four kinds of target that the folders declare, so that each CMakeLists.txt reads as data.
#
#   weir_library(core SOURCES gcra.cc ... DEPS weir::base)       -> target weir_core, alias weir::core
#   weir_test(gcra_test SOURCES gcra_test.cc DEPS weir::core)    -> gtest executable, one ctest entry
#   weir_bench(gcra_bench SOURCES gcra_bench.cc DEPS weir::core) -> Google Benchmark executable
#   weir_fuzz(http1_fuzz SOURCES http1_fuzz.cc DEPS weir::wire)  -> libFuzzer executable (clang only)

find_package(Threads REQUIRED)

add_library(weir_flags INTERFACE)
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers
  -fno-strict-aliasing)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(weir_flags INTERFACE -Wno-restrict)  # GCC bug 105651: "literal" + std::string
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # SSE4.1 and cmpxchg16b for the memory table's lines of 16-byte slots, AES rounds for the keyed hash: every x86-64
  # server since 2011.
  target_compile_options(weir_flags INTERFACE -march=x86-64-v2 -maes)
endif()
target_include_directories(weir_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src> $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
target_link_libraries(weir_flags INTERFACE Threads::Threads)
if(WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE
    -fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
if(WEIR_BUILD_FUZZ)  # Coverage for the fuzzer in every library, without its main().
  target_compile_options(weir_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Boost stays out of the installed package: no public header includes it, and no object that weir::weir pulls in calls
# into a compiled Boost library (scripts/test_install.sh links without any).
function(weir_hide_boost deps)
  list(TRANSFORM ${deps} REPLACE "^(Boost::.*)$" "$<BUILD_INTERFACE:\\1>")
  set(${deps} ${${deps}} PARENT_SCOPE)
endfunction()

function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  weir_hide_boost(ARG_DEPS)
  weir_hide_boost(ARG_PRIVATE_DEPS)
  add_library(weir_${name} STATIC ${ARG_SOURCES})
  add_library(weir::${name} ALIAS weir_${name})
  target_include_directories(weir_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(weir_${name} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS}
    PUBLIC $<BUILD_INTERFACE:weir_flags>)
endfunction()

# THREADS: the test has several, so that ThreadSanitizer builds it too.
function(weir_test name)
  if(NOT WEIR_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "THREADS" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(WEIR_SANITIZE STREQUAL "thread" AND NOT ARG_THREADS)
    return()  # One thread: nothing for this sanitizer to see, and half of its build.
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} weir_flags GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "unit;${ARG_LABELS}")
endfunction()

# What protoc makes of a file, for tests, fuzz targets and rivals only: the product has codecs of its own.
# GRPC: with the service's classes for grpc++.
function(weir_proto_library name file)
  cmake_parse_arguments(ARG "GRPC" "" "" ${ARGN})
  find_package(Protobuf REQUIRED)
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(folder ${file} DIRECTORY)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(made ${out}/${stem}.pb.cc)
  set(plugin "")
  if(ARG_GRPC)
    find_program(WEIR_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
    list(APPEND made ${out}/${stem}.grpc.pb.cc)
    set(plugin --grpc_out=${out} --plugin=protoc-gen-grpc=${WEIR_GRPC_CPP_PLUGIN})
  endif()
  file(MAKE_DIRECTORY ${out})
  add_custom_command(
    OUTPUT ${made} ${out}/${stem}.pb.h
    COMMAND protobuf::protoc --cpp_out=${out} ${plugin} -I${folder} ${file}
    DEPENDS ${file} VERBATIM)
  add_library(${name} STATIC ${made})
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()

function(weir_bench name)
  if(NOT WEIR_BUILD_BENCH)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  find_package(benchmark REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} weir_flags benchmark::benchmark)
endfunction()

function(weir_fuzz name)
  if(NOT WEIR_BUILD_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} weir_flags)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_property(GLOBAL APPEND PROPERTY WEIR_FUZZERS ${name})
endfunction()
