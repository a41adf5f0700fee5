// Reads a study's file.

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "base/text.h"
#include "base/toml_entry.h"
#include "study/read_part.h"
#include "study/study.h"

namespace ridgeline::study {
namespace {

// A table of the study's file, whose values may differ by scale.
TomlEntry entry_of(const toml::table& table, const char* kind, const std::string& file,
                   Scale scale = Scale::full) {
  return TomlEntry(table, kind, file, {{"small", "full"}, name_of(scale)});
}

// The parts that a hypothesis or an exhibit names: all of them where it names none.
std::vector<std::string> parts_of(TomlEntry& entry, const std::vector<std::string>& ids) {
  const std::vector<std::string_view> known(ids.begin(), ids.end());
  std::vector<std::string> parts = entry.texts("parts", [&](const std::string& name) {
    if (std::find(ids.begin(), ids.end(), name) != ids.end()) return;
    bad_input("no part has the id '{}'{}{} There are: {}", name, did_you_mean(name, known),
              nearest(name, known) ? "" : ".", joined(ids, ", "));
  });
  return parts.empty() ? ids : parts;
}

// `word` must be one of them.
void check_word(const TomlEntry& entry, const char* key, const char* what, const std::string& word,
                const std::vector<Word>& words) {
  std::vector<std::string_view> known;
  for (const Word& each : words) known.push_back(each.name);
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  entry.refuse_at(
      key, fmt::format("unknown {} '{}'{}{} Known: {}", what, word, did_you_mean(word, known),
                       nearest(word, known) ? "" : ".", joined(known, ", ")));
}

Hypothesis read_hypothesis(TomlEntry& entry, const std::vector<std::string>& ids) {
  Hypothesis hypothesis;
  hypothesis.id = entry.required_text("id");
  hypothesis.statement = entry.required_text("statement");
  hypothesis.test = entry.required_text("test");
  hypothesis.of = entry.text("of");
  hypothesis.than = entry.text("than");
  hypothesis.axis = entry.text("axis");
  hypothesis.parts = parts_of(entry, ids);
  entry.finish();
  check_word(entry, "test", "test", hypothesis.test, hypothesis_tests());
  return hypothesis;
}

Exhibit read_show(TomlEntry& entry, const std::vector<std::string>& ids) {
  Exhibit exhibit;
  const std::string table = entry.text("table"), figure = entry.text("figure");
  exhibit.title = entry.text("title");
  exhibit.parts = parts_of(entry, ids);
  entry.finish();
  if (table.empty() == figure.empty()) entry.refuse("needs either 'table' or 'figure'");
  exhibit.figure = table.empty();
  exhibit.name = exhibit.figure ? figure : table;
  if (exhibit.figure) {
    check_word(entry, "figure", "figure", exhibit.name, figure_names());
  } else {
    check_word(entry, "table", "table", exhibit.name, table_names());
  }
  return exhibit;
}

// The second table with an id that another has.
void check_ids(const std::vector<const toml::table*>& tables, const char* kind,
               const std::string& file) {
  std::map<std::string, unsigned> lines;
  for (const toml::table* table : tables) {
    const std::optional<std::string> id = table->get_as<std::string>("id") != nullptr
                                              ? (*table)["id"].value<std::string>()
                                              : std::nullopt;
    if (!id) continue;
    const unsigned line = table->get("id")->source().begin.line;
    const auto [first, fresh] = lines.emplace(*id, line);
    if (fresh) continue;
    bad_input("{}, line {}: [[{}]]: the id '{}' is that of line {}; ids must differ", file, line,
              kind, *id, first->second);
  }
}

Definition read_definition(TomlEntry& entry, const std::string& source) {
  Definition definition;
  definition.name = entry.required_text("name");
  definition.title = entry.required_text("title");
  definition.question = entry.required_text("question");
  definition.source = source;
  // Read by others.
  for (const char* key : {"part", "hypothesis", "show"}) entry.allow(key);
  entry.finish();
  return definition;
}

}  // namespace

Study parse_study(std::string_view text, const std::string& source) {
  const toml::table document = parse_toml(text, source);
  Study study;
  study.text = std::string(text);
  TomlEntry top = entry_of(document, "study", source);
  study.definition = read_definition(top, source);

  const auto parts = toml_tables(document, "part", source);
  if (parts.empty()) bad_input("{}: has no [[part]]: nothing to do", source);
  check_ids(parts, "part", source);
  std::vector<std::string> ids;
  for (const Scale scale : {Scale::small, Scale::full}) {
    ids.clear();
    for (const toml::table* table : parts) {
      TomlEntry entry = entry_of(*table, "[[part]]", source, scale);
      std::optional<Part> part = read_part(entry, scale);
      ids.push_back(*(*table)["id"].value<std::string>());
      if (part) (scale == Scale::small ? study.small : study.full).push_back(std::move(*part));
    }
  }
  const auto hypotheses = toml_tables(document, "hypothesis", source);
  check_ids(hypotheses, "hypothesis", source);
  for (const toml::table* table : hypotheses) {
    TomlEntry entry = entry_of(*table, "[[hypothesis]]", source);
    study.definition.hypotheses.push_back(read_hypothesis(entry, ids));
  }
  for (const toml::table* table : toml_tables(document, "show", source)) {
    TomlEntry entry = entry_of(*table, "[[show]]", source);
    study.definition.exhibits.push_back(read_show(entry, ids));
  }
  return study;
}

}  // namespace ridgeline::study
