#include "support/source_dir.h"

namespace ridgeline::testing {

std::filesystem::path source_dir() { return RIDGELINE_SOURCE_DIR; }

}  // namespace ridgeline::testing
