#include "report/analysis/text.h"

#include "base/error.h"
#include "report/analysis/places.h"

namespace ridgeline::report {

TextInput text_input(const Data& data, Ratios& ratios, const Runs& runs) {
  Runs newest = newest_of(runs);
  Runs timed = newest;
  std::erase_if(timed, [](const RunView* run) { return run->run.command == "profile"; });
  Wording wording(newest);
  return {.data = data,
          .ratios = ratios,
          .runs = std::move(newest),
          .timed = std::move(timed),
          .wording = std::move(wording)};
}

std::string run_words(const TextInput& input, const RunView& run) {
  return fmt::format("{} on {}", input.wording.run(run), place_text(input.data, place_of(run)));
}

std::vector<Paragraph> analysis_of(const Data& data, Ratios& ratios, const Runs& runs, bool brief) {
  const TextInput input = text_input(data, ratios, runs);
  std::vector<Paragraph> paragraphs;
  const auto add = [&](const char* name, std::vector<Sentence> sentences) {
    std::erase_if(sentences, [](const Sentence& sentence) { return !sentence; });
    if (brief && sentences.size() > 1) sentences.resize(1);
    const auto said = paragraph_of(sentences);
    if (!said) return;
    Paragraph paragraph{{{.text = std::string(name) + ". ", .runs = {}, .strong = true}}};
    paragraph.pieces.insert(paragraph.pieces.end(), said->pieces.begin(), said->pieces.end());
    paragraphs.push_back(std::move(paragraph));
  };
  add("Environments", environment_impact(input));
  add("Executors", executor_differences(input));
  add("Networks", model_differences(input));
  add("Batch size", batch_effects(input));
  add("Bottlenecks", bottlenecks(input));
  add("Learning", learning(input));
  return paragraphs;
}

}  // namespace ridgeline::report
