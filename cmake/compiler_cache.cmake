# ccache, where it is installed, so that a second checkout of the same sources builds in a minute or two wherever it
# lies. RIDGELINE_CCACHE=OFF does without; a launcher of another kind that the user names stays.
option(RIDGELINE_CCACHE "Compile through ccache where it is installed" ON)
set(uses_ccache OFF)
if(RIDGELINE_CCACHE)
  find_program(CCACHE_PROGRAM ccache)
endif()
if(RIDGELINE_CCACHE AND CCACHE_PROGRAM)
  set(ccache_launcher "${CMAKE_COMMAND}" -E env
    "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${CCACHE_PROGRAM}")
  foreach(language IN ITEMS CXX CUDA)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER OR CMAKE_${language}_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
      set(CMAKE_${language}_COMPILER_LAUNCHER ${ccache_launcher})
      set(uses_ccache ON)
    endif()
  endforeach()
endif()
