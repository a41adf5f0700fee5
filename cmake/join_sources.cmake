# join_sources(TARGET PATTERN): the target's files whose path below the project matches are compiled eight of a folder at a
# time, which takes half as long: what they all include is read, and what they all instantiate is compiled, once. Names in
# unnamed namespaces must therefore differ within a folder. Files with options of their own are left alone.
function(join_sources target pattern)
  get_target_property(sources ${target} SOURCES)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE path)
    get_source_file_property(own_options "${source}" COMPILE_OPTIONS)
    if(path MATCHES "^${pattern}" AND path MATCHES "\\.cpp$" AND NOT own_options)
      cmake_path(GET path PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      math(EXPR part "${count_${group}} + 0")
      math(EXPR count_${group} "${part} + 1")
      math(EXPR part "${part} / 8")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
endfunction()
