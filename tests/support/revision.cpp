// Takes the place of the generated revision in test programs, so that a commit does not change
// them.

#include "build_info.h"

const char* const ridgeline::build_info::revision = "tests";
