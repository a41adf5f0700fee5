#pragma once

// The fields of a run's identity by name, with what the list of fields.h says of them: for all that
// compares, filters, groups or names runs.

#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/fields.h"

namespace ridgeline {

struct IdentityField {
  std::string_view name, label, unit, meaning, pattern, usual;
  Scope scope;
  bool of_work;    // else of the executor
  bool is_number;  // whole or real
  bool is_flag;    // its text is "yes" or empty

  // The value for people and filters; empty where there is none, or nothing to be said.
  std::string (*text)(const RunRecord& run);
  // The same as captions, names of series and sentences say it: "batch 64". Empty for the usual
  // value.
  std::string (*phrase)(const RunRecord& run);
  std::optional<double> (*value)(const RunRecord& run);  // of numbers
  bool (*equal)(const RunRecord& a, const RunRecord& b);
  void (*clear)(RunRecord& run);  // as if it had not been set
};

[[nodiscard]] std::span<const IdentityField> identity_fields();
// REQUIRES: there is one. find_identity_field: null where there is none.
[[nodiscard]] const IdentityField& identity_field(std::string_view name);
[[nodiscard]] const IdentityField* find_identity_field(std::string_view name);

// Work and executor without the fields named: equal where runs differ in these alone.
struct Identity {
  Work work;
  Executor executor;
  bool operator==(const Identity&) const = default;
};
[[nodiscard]] Identity identity_without(const RunRecord& run,
                                        std::span<const std::string_view> names);
// The same as one text, for maps.
[[nodiscard]] std::string identity_key(const RunRecord& run,
                                       std::span<const std::string_view> names = {});

// Options of a model of the zoo that are not in the settings get the value it has by itself: a
// later program may have another one.
void complete_settings(Work& work);
// "hidden=64,32, depth=3": options that are not at the value a model of the zoo has by itself.
[[nodiscard]] std::string settings_text(const Work& work);
// "sgd, learning rate 0.01, momentum 0.9"; empty for inference.
[[nodiscard]] std::string optimizer_text(const Work& work);
// What an executor does otherwise than usual: "deterministic, without fusion, compile".
[[nodiscard]] std::string options_text(const Executor& executor);

// All that is to be said of one half: "mlp, inputs of 1x28x28, batch 64, fp32, sgd, momentum 0.9",
// "native on cpu, 4 threads, without fusion".
[[nodiscard]] std::string work_text(const RunRecord& run);
[[nodiscard]] std::string executor_text(const RunRecord& run);

// Fields that differ between runs that should differ by the batch alone: where it is the whole data
// set, that one's size as well.
[[nodiscard]] std::vector<std::string_view> batch_fields(const Work& work);

// Objects with a member for each field.
[[nodiscard]] nlohmann::ordered_json to_json(const Work& work);
[[nodiscard]] nlohmann::ordered_json to_json(const Executor& executor);

}  // namespace ridgeline
