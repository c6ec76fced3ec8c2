# What `cmake --install` lays down: the binary, the public headers, the documents, and a CMake package.
#
#   find_package(weir REQUIRED)
#   target_link_libraries(app PRIVATE weir::weir)
#
# weir::weir is src/decide with the floors below it, as static libraries. The package asks its user for
# exactly the libraries that these need; they are found by walking the link graph here, not by a list.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Sets `libraries` to the targets of ours that `target` reaches, and `others` to the foreign ones.
function(weir_link_closure target libraries others)
  set(open ${target})
  set(ours "")
  set(foreign "")
  while(open)
    list(POP_FRONT open next)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" next "${next}")
    if(next MATCHES "^\\$<" OR NOT next MATCHES "[A-Za-z]")
      continue()
    endif()
    if(TARGET ${next})
      get_target_property(aliased ${next} ALIASED_TARGET)
      if(aliased)
        set(next ${aliased})
      endif()
    endif()
    if(next IN_LIST ours OR next IN_LIST foreign OR next STREQUAL "weir_flags")
      continue()
    endif()
    if(NOT next MATCHES "^weir_")
      list(APPEND foreign ${next})
      continue()
    endif()
    list(APPEND ours ${next})
    get_target_property(public ${next} INTERFACE_LINK_LIBRARIES)
    if(public)
      list(APPEND open ${public})
    endif()
  endwhile()
  set(${libraries} ${ours} PARENT_SCOPE)
  set(${others} ${foreign} PARENT_SCOPE)
endfunction()

install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/examples/quickstart.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/docs/openapi.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
if(TARGET weir)
  install(TARGETS weir RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

if(TARGET weir_decide)
  set_target_properties(weir_decide PROPERTIES EXPORT_NAME weir)
  target_compile_features(weir_decide PUBLIC cxx_std_23)

  weir_link_closure(weir_decide WEIR_EXPORTED WEIR_FOREIGN)
  set(WEIR_FIND_DEPENDENCIES "")
  foreach(foreign IN LISTS WEIR_FOREIGN)
    string(REGEX REPLACE "::.*" "" package "${foreign}")
    list(APPEND WEIR_FIND_DEPENDENCIES "find_dependency(${package})")
  endforeach()
  list(REMOVE_DUPLICATES WEIR_FIND_DEPENDENCIES)
  list(JOIN WEIR_FIND_DEPENDENCIES "\n" WEIR_FIND_DEPENDENCIES)

  set(WEIR_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
  install(TARGETS ${WEIR_EXPORTED} EXPORT weirTargets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${WEIR_PACKAGE_DIR})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/weirConfig.cmake.in
    ${CMAKE_BINARY_DIR}/package/weirConfig.cmake INSTALL_DESTINATION ${WEIR_PACKAGE_DIR}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/weirConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/package/weirConfig.cmake
                ${CMAKE_BINARY_DIR}/package/weirConfigVersion.cmake
          DESTINATION ${WEIR_PACKAGE_DIR})
endif()
