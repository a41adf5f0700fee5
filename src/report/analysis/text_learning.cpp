// What trainings reached.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "report/analysis/places.h"
#include "report/analysis/text.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

struct Learned {
  const RunView* run = nullptr;
  double accuracy = 0.0;   // after the last epoch that was tested
  std::int64_t epoch = 0;  // that one

  // "after 12 epochs (resumed after epoch 3)"
  [[nodiscard]] std::string when() const {
    const std::string resumed = run->resumed();
    return fmt::format("after {}{}",
                       count_words(static_cast<std::size_t>(epoch),
                                   run->run.work.full_batch ? "iteration" : "epoch"),
                       resumed.empty() ? "" : fmt::format(" ({})", resumed));
  }
};

// Of trainings on the same data and network: the best and the worst.
Sentence range_sentence(const TextInput& input, const std::vector<Learned>& trainings) {
  const auto [least, most] = std::ranges::minmax_element(trainings, {}, &Learned::accuracy);
  Prose text;
  const Work& work = most->run->run.work;
  if (trainings.size() == 1) {
    text.say(run_words(input, *most->run), {most->run->run.id});
    text.say(fmt::format(" reaches {} test accuracy on {} {}", percent_text(most->accuracy),
                         work.data, most->when()));
  } else {
    const auto tell = [&](const Learned& learned) {
      text.say(fmt::format("{} {}, {}", percent_text(learned.accuracy), learned.when(),
                           run_words(input, *learned.run)),
               {learned.run->run.id});
    };
    text.say(fmt::format("On {}, {} of {} ", work.data, count_words(trainings.size(), "training"),
                         work.model));
    if (percent_text(least->accuracy) == percent_text(most->accuracy)) {
      Runs runs;
      for (const Learned& learned : trainings) runs.push_back(learned.run);
      text.say("end with the same test accuracy, ");
      text.say(percent_text(most->accuracy), ids_of(runs));
    } else {
      text.say("end with test accuracies from ");
      tell(*least);
      text.say(", to ");
      tell(*most);
    }
  }
  text.say(".");
  return text;
}

}  // namespace

std::vector<Sentence> learning(const TextInput& input) {
  std::map<std::pair<std::string, std::string>, std::vector<Learned>> groups;
  Runs guessing, diverged;
  for (const RunView* run : input.runs) {
    const EpochRecord* tested = last_tested(*run);
    const bool lost = std::ranges::any_of(
        run->epochs, [](const EpochRecord& epoch) { return !std::isfinite(epoch.train_loss); });
    if (lost) {
      diverged.push_back(run);
      continue;
    }
    if (tested == nullptr) continue;
    const std::vector<Finding> flags = flags_of(input.data, *run);
    if (std::ranges::any_of(flags, [](const Finding& flag) { return flag.name == kAtChance; })) {
      guessing.push_back(run);
      continue;
    }
    const Work& work = run->run.work;
    groups[{work.data, work.model}].push_back({run, *tested->test_accuracy, tested->epoch});
  }
  std::vector<Sentence> sentences;
  for (const auto& [key, trainings] : groups) sentences.push_back(range_sentence(input, trainings));
  const auto tell = [&](const Runs& runs, const char* what) {
    if (runs.empty()) return;
    Prose text;
    std::vector<std::string> names;
    for (const RunView* run : runs) names.push_back(run_words(input, *run));
    text.say(list_text(names, 3), ids_of(runs));
    text.say(fmt::format(" {}.", what));
    sentences.emplace_back(std::move(text));
  };
  tell(guessing, "learned nothing: the accuracy is that of guessing");
  tell(diverged, "diverged: the loss is not a number");
  return sentences;
}

}  // namespace ridgeline::report
