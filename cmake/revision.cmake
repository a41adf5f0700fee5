# Writes revision.cpp and kernels_hash.cpp into the folder OUTPUT, which define build_info::revision and build_info::kernels,
# and touches each only when its value changed.
set(revision "unknown")
find_program(GIT git)
if(GIT AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(
    COMMAND "${GIT}" describe --always --dirty --exclude "*"
    WORKING_DIRECTORY "${SOURCE_DIR}"
    OUTPUT_VARIABLE described RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    set(revision "${described}")
  endif()
endif()
# What decides how fast a plan is: kernels, and how they are chosen and launched.
set(sources "")
foreach(folder base devices plan backends)
  file(GLOB_RECURSE found "${SOURCE_DIR}/src/${folder}/*")
  list(APPEND sources ${found})
endforeach()
list(SORT sources)
set(hashes "")
foreach(source IN LISTS sources)
  file(SHA256 "${source}" hash)
  string(APPEND hashes "${hash}")
endforeach()
string(SHA256 kernels "${hashes}")
string(SUBSTRING "${kernels}" 0 16 kernels)

function(write_value file name value)
  file(CONFIGURE OUTPUT "${OUTPUT}/${file}" CONTENT [[
#include "build_info.h"

const char* const ridgeline::build_info::@name@ = "@value@";
]] @ONLY)
endfunction()
write_value(revision.cpp revision "${revision}")
write_value(kernels_hash.cpp kernels "${kernels}")
