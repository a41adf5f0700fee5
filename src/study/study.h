#pragma once

// An experiment as a file tells it (studies/*.toml; docs/studies.md has the format): what is
// measured, on what, which hypotheses it tests, and which tables and figures show it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/part.h"

namespace ridgeline::study {

// A sentence that the data confirm, do not confirm, or leave undecided.
struct Hypothesis {
  std::string id;                  // "gpu-wins": unique in the study
  std::string statement;           // "A GPU trains every network faster than a CPU."
  std::string test;                // a name of hypothesis_tests()
  std::vector<std::string> parts;  // whose runs it rests on: never empty
  // What the test compares: conditions on runs as `compare` takes them, "device=cuda:0". `than` is
  // the slower or smaller side; both empty where the test needs none.
  std::string of, than;
  std::string axis;  // what a quantity is said to grow with: "batch", "training_flops", "samples"
};

// A table or a figure of the study's section in the report.
struct Exhibit {
  bool figure = false;
  std::string name;                // of table_names() or figure_names()
  std::string title;               // "Table 2: throughput by model and environment"
  std::vector<std::string> parts;  // whose runs it shows: never empty
};

struct Definition {
  std::string name;      // "backends"
  std::string title;     // "One CNN, five execution backends"
  std::string question;  // what it wants to know, a few sentences
  std::string source;    // where the file lies, for messages
  std::vector<Hypothesis> hypotheses;
  std::vector<Exhibit> exhibits;
};

// A whole file.
struct Study {
  Definition definition;
  std::string text;  // as it stands in the file
  // What is done at each scale, in the order of the file.
  std::vector<Part> small, full;

  [[nodiscard]] const std::vector<Part>& parts(Scale scale) const {
    return scale == Scale::small ? small : full;
  }
};

// Throws bad_input with the file, the line, what is wrong there and what would be right. `source`
// is what messages call the file.
[[nodiscard]] Study parse_study(std::string_view text, const std::string& source);

// The studies that the program carries, in the order in which they are listed.
[[nodiscard]] std::vector<std::string> built_in_studies();
// One of them by its name, or a file. Throws bad_input where there is neither.
[[nodiscard]] Study find_study(const std::string& name_or_file);

// Words of the file format that the report gives a meaning to.
struct Word {
  std::string_view name, meaning;
};
[[nodiscard]] const std::vector<Word>& table_names();
[[nodiscard]] const std::vector<Word>& figure_names();
[[nodiscard]] const std::vector<Word>& hypothesis_tests();

}  // namespace ridgeline::study
