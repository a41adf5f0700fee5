#pragma once

// The fields by which reports name, group and compare runs: those of a run's identity, how and
// where it was measured. Tables, figures and sentences take names and phrases from here.

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/data.h"
#include "store/identity_fields.h"

namespace ridgeline::report {

using FieldNames = std::vector<std::string_view>;

// Whether a list has the item.
[[nodiscard]] constexpr bool has(const auto& list, const auto& item) {
  return std::ranges::find(list, item) != std::ranges::end(list);
}

struct RunField {
  std::string_view name, label, meaning;
  bool number = false;
  Scope scope = Scope::all;
  // The value, as a table's cell has it; empty: there is none.
  std::function<std::string(const Data& data, const RunView& run)> text;
  // The same in captions, names of series and sentences: "batch 64". Empty for the usual value.
  std::function<std::string(const Data& data, const RunView& run)> phrase;
  std::function<std::optional<double>(const RunView& run)> value = {};  // of numbers
};

// In the order of tables' columns: the fields of the identity by their names, `command`, `machine`,
// and `executor`, which tells backend, device, precision and options in one.
[[nodiscard]] std::span<const RunField> run_fields();
// Also "backend", "precision" and the others that `executor` tells. REQUIRES: there is one.
[[nodiscard]] const RunField& run_field(std::string_view name);
// Names of those that tell what was computed, and of the others: who computed it, where, and how it
// was measured.
[[nodiscard]] const FieldNames& work_fields();
[[nodiscard]] const FieldNames& executor_fields();
[[nodiscard]] FieldNames fields_without(const FieldNames& names);

// Fields in which some of the runs differ, in their order. Fields that come with a network count
// only among runs of the same network and command, threads only among runs of one machine.
[[nodiscard]] std::vector<const RunField*> differing_fields(const Data& data, const Runs& runs);

// Equal for runs on the same machine, by the same command, that differ at most in the fields named;
// "executor" stands for all that it tells but the precision, which is part of the work.
[[nodiscard]] std::string run_key(const RunView& run, const FieldNames& except = {});

// Runs of equal keys together, in the order of the first of each.
[[nodiscard]] std::vector<Runs> grouped(const Runs& runs, const FieldNames& except);

// " All: batch 128; inputs of 3x224x224; sgd.": what all runs have in common, for captions. Fields
// of `told` are told otherwise. Empty: nothing that matters.
[[nodiscard]] std::string common_text(const Data& data, const Runs& runs, const FieldNames& told);

// The network with its options: "mlp (hidden=64)".
[[nodiscard]] std::string network_name(const RunView& run);
[[nodiscard]] std::optional<double> number_of(const RunView& run, const std::string& name);
// FLOPs of an iteration for one sample.
[[nodiscard]] std::optional<double> flops_of_sample(const RunView& run);

// Calls runs by what tells them apart. Runs that are not repetitions of each other thus never have
// the same name.
class Names {
 public:
  // `shown`: fields that are told otherwise, by an axis, categories or a title. `always`: fields
  // that names tell even where all runs are equal in them. `data` must outlive it.
  Names(const Data& data, const Runs& runs, FieldNames shown = {},
        FieldNames always = {"executor"});
  [[nodiscard]] std::string of(const RunView& run) const;
  // What names do not tell because all runs have it in common, as common_text() has it.
  [[nodiscard]] const std::string& common() const { return common_; }

 private:
  [[nodiscard]] std::string phrase(const RunField& field, const RunView& run) const;

  const Data& data_;
  FieldNames shown_;
  // Fields that differ, with what the runs that differ have in common.
  std::set<std::pair<const RunField*, std::string>> told_;
  std::string common_;
};

}  // namespace ridgeline::report
