# Checks of the source tree that are part of every build and of every test run.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_custom_target(floors ALL
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check_floors.py ${CMAKE_SOURCE_DIR}
  COMMENT "Includes point downward only" VERBATIM)

if(WEIR_BUILD_TESTS)
  add_test(NAME floors
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check_floors.py ${CMAKE_SOURCE_DIR})
  add_test(NAME check_floors_test
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check_floors_test.py)
  set_tests_properties(floors check_floors_test PROPERTIES TIMEOUT 60 LABELS "checks")
endif()
