#include "report/analysis/text.h"

#include "base/error.h"
#include "report/analysis/places.h"

namespace ridgeline::report {

TextInput text_input(const Data& data, const Runs& runs) {
  Runs newest = newest_of(runs);
  Runs timed = newest;
  std::erase_if(timed, [](const RunView* run) { return run->run.command == "profile"; });
  Wording wording(newest);
  return {.data = data,
          .runs = std::move(newest),
          .timed = std::move(timed),
          .wording = std::move(wording)};
}

std::string run_words(const TextInput& input, const RunView& run) {
  return fmt::format("{} on {}", input.wording.run(run), place_text(input.data, place_of(run)));
}

std::vector<Told> analysis_of(const Data& data, const Runs& runs) {
  const TextInput input = text_input(data, runs);
  std::vector<Told> all;
  const auto add = [&](const char* name, std::vector<Sentence> sentences) {
    std::erase_if(sentences, [](const Sentence& sentence) { return !sentence; });
    const auto said = paragraph_of(sentences);
    if (!said) return;
    Told told{sentences.front(), {{{.text = std::string(name) + ". ", .strong = true}}}};
    told.paragraph.pieces.insert(told.paragraph.pieces.end(), said->pieces.begin(),
                                 said->pieces.end());
    all.push_back(std::move(told));
  };
  add("Environments", environment_impact(input));
  add("Executors", executor_differences(input));
  add("Networks", model_differences(input));
  add("Batch size", batch_effects(input));
  add("Bottlenecks", bottlenecks(input));
  add("Learning", learning(input));
  return all;
}

}  // namespace ridgeline::report
