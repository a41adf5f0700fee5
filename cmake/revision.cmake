# Writes OUTPUT, which defines build_info::revision, and touches it only when the revision of SOURCE_DIR changed.
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
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
#include "build_info.h"

const char* const ridgeline::build_info::revision = "@revision@";
]] @ONLY)
