# Helpers for the leaf CMakeLists.txt files: one call names a target, its sources and what it uses.

set(NEURON_WARNINGS -Wall -Wextra -Werror -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these in inlined standard and MLIR headers (GCC bugs 105329, 105562, 107138).
  list(APPEND NEURON_WARNINGS -Wno-restrict -Wno-maybe-uninitialized)
  list(APPEND NEURON_WARNINGS -Wno-stringop-overflow -Wno-array-bounds -Wno-free-nonheap-object)
else()
  # clang (the fuzzers) reports std::get_temporary_buffer in std::stable_sort of libstdc++ 12.
  list(APPEND NEURON_WARNINGS -Wno-deprecated-declarations)
endif()

function(neuron_target_options target)
  target_compile_options(${target} PRIVATE ${NEURON_WARNINGS})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  if(NEURON_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${NEURON_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${NEURON_SANITIZE})
  endif()
endfunction()

# add_neuron_library(<name> SOURCES ... LINK ... DEPENDS ...): a static, position-independent library.
function(add_neuron_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  neuron_target_options(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# add_neuron_tool(<name> SOURCES ... LINK ...): an installed command-line program.
function(add_neuron_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  neuron_target_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  # pip puts the tools beside python, so that an activated environment has them.
  if(SKBUILD_SCRIPTS_DIR)
    install(TARGETS ${name} RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  endif()
endfunction()

# add_neuron_unit_test(<name> SOURCES ... LINK ...): a GoogleTest program, each test case a ctest test.
function(add_neuron_unit_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  neuron_target_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest_main GTest::gmock)
  include(GoogleTest)
  gtest_discover_tests(${name} PROPERTIES LABELS unit DISCOVERY_MODE PRE_TEST)
endfunction()
