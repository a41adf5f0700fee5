#include <array>

#include "base/error.h"
#include "study/part.h"

namespace ridgeline::study {

std::string_view name_of(Scale scale) { return scale == Scale::small ? "small" : "full"; }

Scale parse_scale(std::string_view name) {
  if (name == "small") return Scale::small;
  if (name == "full") return Scale::full;
  bad_input("scale '{}': must be small or full", name);
}

std::string_view name_of(PartCommand command) {
  static constexpr std::array<std::string_view, 5> kNames = {"bench", "inference", "train",
                                                             "profile", "ceilings"};
  return kNames[static_cast<std::size_t>(command)];
}

}  // namespace ridgeline::study
