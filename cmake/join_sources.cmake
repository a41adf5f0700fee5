# group_sources(FILE...): joined targets compile these files eight of a folder at a time, which takes half as long: what
# they all include is read, and what they all instantiate is compiled, once. Names in unnamed namespaces must therefore
# differ within a folder. A build that leaves files out names all of them here, so that it joins no others than the rest.
# Files that Highway compiles for several instruction sets, and those with options of their own, are left alone.
function(group_sources)
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_SOURCE_DIR}" OUTPUT_VARIABLE path)
    get_source_file_property(own_options "${source}" COMPILE_OPTIONS)
    if(NOT path MATCHES "\\.cpp$" OR path MATCHES "_(x86|arm64)\\.cpp$" OR own_options)
      continue()
    endif()
    file(STRINGS "${source}" several_sets REGEX "^#define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    if(NOT several_sets)
      cmake_path(GET path PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "${folder}" group)
      math(EXPR part "${count_${group}} + 0")
      math(EXPR count_${group} "${part} + 1")
      math(EXPR part "${part} / 8")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
endfunction()

# join_sources(TARGET): the target's grouped files are joined.
function(join_sources target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # To the compiler a joined file looks like a header, where members of types without a name outside would be a mistake.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endfunction()
