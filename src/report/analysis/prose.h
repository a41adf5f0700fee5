#pragma once

// Sentences of the report: numbers are written here as tables write them, so that text, tables and
// figures show the same digits.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "report/data.h"
#include "report/document.h"
#include "report/run_fields.h"

namespace ridgeline::report {

// Text in pieces, each with the runs that it rests on.
class Prose {
 public:
  Prose& say(std::string text);
  Prose& say(std::string text, std::vector<RunId> runs);
  Prose& strong(std::string text);
  // The other's pieces, with a space between.
  Prose& add(const Prose& other);
  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] std::string text() const;  // without the links

 private:
  std::vector<Piece> pieces_;
};

// A sentence, or nothing where the data do not support it.
using Sentence = std::optional<Prose>;
// One paragraph of those that have something to say; nothing where none has.
[[nodiscard]] std::optional<Paragraph> paragraph_of(const std::vector<Sentence>& sentences);

// "1,107 [1,098–1,115]"; the number alone where there is no interval.
[[nodiscard]] std::string estimate_text(const Estimate& estimate);
// The same with the unit behind: "1,107 [1,098–1,115] img/s".
[[nodiscard]] std::string estimate_text(const Estimate& estimate, const std::string& unit);
[[nodiscard]] std::string percent_text(double share);  // "34.1%", "3.4%"
[[nodiscard]] std::string limit_text(double share);    // of a limit that is exact: "10%"
// As counts are written where it is whole: "1,980"; else with three digits.
[[nodiscard]] std::string plain_text(double value);
[[nodiscard]] std::string bytes_words(double bytes);                   // "1.2 GB": powers of ten
[[nodiscard]] std::string rate_words(double value, const char* unit);  // "110 GFLOP/s"
// "a", "a and b", "a, b and c"; beyond `most`: "a, b and 4 more".
[[nodiscard]] std::string list_text(const std::vector<std::string>& items, std::size_t most = 6);
// "one run", "3 runs"; `plural` where an s does not make it.
[[nodiscard]] std::string count_words(std::size_t count, const std::string& noun,
                                      const std::string& plural = {});
// "Three of them" begins a sentence: the first letter in upper case.
[[nodiscard]] std::string sentence_case(std::string text);

// What a run computed, and who computed it, in as few words as tell it from others of `among`: work
// by its batch where networks of one name differ in that, by the image where that still leaves two
// alike, and so on; executors of the same work by their threads where these differ.
class Wording {
 public:
  explicit Wording(const Runs& among);
  [[nodiscard]] std::string work(const RunView& run) const;      // "resnet18 (batch 64, bf16)"
  [[nodiscard]] std::string executor(const RunView& run) const;  // "native in bf16 (4 threads)"
  // Both, the precision once: "resnet18 (batch 64) with native in bf16 (4 threads)".
  [[nodiscard]] std::string run(const RunView& run, FieldNames except = {}) const;
  // What is told of the work beside the network's name, without some fields: "batch 64".
  [[nodiscard]] std::string details(const RunView& run, const FieldNames& except) const;

 private:
  [[nodiscard]] std::string phrases(const RunView& run, bool of_work,
                                    const FieldNames& except) const;
  // What has been said of some runs, and the field that tells them apart then.
  std::set<std::pair<std::string, const IdentityField*>> telling_;
};

[[nodiscard]] std::vector<RunId> ids_of(const Runs& runs);

}  // namespace ridgeline::report
