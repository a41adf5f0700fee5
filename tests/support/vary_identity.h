#pragma once

// Runs that differ in one field of their identity, whatever its type.

#include <string_view>
#include <tuple>

#include "store/fields.h"

namespace ridgeline::testing {

// Another value of the same type.
inline void vary(std::string& value) { value += "2"; }
inline void vary(bool& value) { value = !value; }
inline void vary(int& value) { ++value; }
inline void vary(std::int64_t& value) { ++value; }
inline void vary(double& value) { value += 0.25; }
inline void vary(std::optional<double>& value) { value = value.value_or(0.0) + 0.25; }
inline void vary(ImageShape& value) { ++value.width; }
inline void vary(NameList& value) { value.push_back("other"); }
inline void vary(NumberList& value) { value.push_back(0.5); }
inline void vary(Settings& value) { value["activation"] = "tanh"; }

template <typename Half>
void vary(Half& half, std::string_view name) {
  std::apply(
      [&](const auto&... field) {
        ((field.name == name ? vary(half.*field.member) : void()), ...);
      },
      Fields<Half>::list);
}

// The field of that name; none for a name that is no field's.
inline void vary(RunRecord& run, std::string_view name) {
  vary(run.work, name);
  vary(run.executor, name);
}

}  // namespace ridgeline::testing
