#include "measure/profile/tool_version.h"

#include "base/error.h"

namespace ridgeline {
namespace {

// From here on versions are written 13 00 01; before they were counted up.
constexpr std::uint32_t kFirstSpelled = 130000;

}  // namespace

std::string cupti_version_text(std::uint32_t version) {
  if (version < kFirstSpelled) return fmt::format("{}", version);
  return fmt::format("{}.{} ({})", version / 10000, version / 100 % 100, version);
}

std::string refuse_cupti_version(std::uint32_t built, std::uint32_t found) {
  if (built == found) return {};
  const bool spelled = built >= kFirstSpelled && found >= kFirstSpelled;
  if (spelled && built / 10000 == found / 10000 && found / 100 >= built / 100) return {};
  return fmt::format("it is version {}, and this build reads the records of version {}",
                     cupti_version_text(found), cupti_version_text(built));
}

}  // namespace ridgeline
