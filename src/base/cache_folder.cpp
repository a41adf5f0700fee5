#include "base/cache_folder.h"

#include <cstdlib>

namespace ridgeline {

std::filesystem::path cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::filesystem::path(cache) / "ridgeline";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') {
    return std::filesystem::path(home) / ".cache" / "ridgeline";
  }
  return {};
}

}  // namespace ridgeline
