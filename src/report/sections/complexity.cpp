// What the networks ask for, whoever runs them.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

// Training work of one sample.
struct Cost {
  const RunView* run = nullptr;
  double flops = 0.0;
};

std::optional<double> sample_flops(const RunView& run) {
  const auto flops = run.number("training_flops");
  if (run.run.work.kind != "training" || !flops || run.run.work.batch < 1) return std::nullopt;
  return *flops / static_cast<double>(run.run.work.batch);
}

// "At 3x64x64, training on one sample takes from … (squeezenet1_1) to … (resnet50)."
Sentence range_sentence(const std::string& image, const std::map<std::string, Cost>& models) {
  if (models.size() < 2) return std::nullopt;
  const auto less = [](const auto& a, const auto& b) { return a.second.flops < b.second.flops; };
  const auto [least, most] = std::minmax_element(models.begin(), models.end(), less);
  Prose text;
  text.say(fmt::format("With samples of {}, a training step takes from {} a sample ({}) ", image,
                       rate_words(least->second.flops, "FLOP"), least->first),
           {least->second.run->run.id});
  text.say(fmt::format("to {} ({})", rate_words(most->second.flops, "FLOP"), most->first),
           {most->second.run->run.id});
  text.say(
      fmt::format(", {} times as many.", number_text(most->second.flops / least->second.flops)));
  return text;
}

}  // namespace

namespace {

// A network is drawn once, however many settings of it were tried: where the steps of its plan are
// known, and as it is without any settings.
std::pair<bool, bool> drawn_rather(const RunView& run) {
  return {run.run.numbers.contains("plan_steps"), run.run.work.settings.empty()};
}

}  // namespace

Section complexity_section(const SectionInput& input) {
  Section section = titled("complexity", "Complexity of the networks");
  const std::vector<const RunView*> runs = shown_runs(input);
  std::map<std::string, std::map<std::string, Cost>> by_image;
  std::vector<const RunView*> of_each_model;
  for (const RunView* run : runs) {
    const Work& work = run->run.work;
    const std::string name =
        work.settings.empty() ? work.model : fmt::format("{} ({})", work.model, work.settings);
    if (const auto flops = sample_flops(*run)) by_image[work.image][name] = {run, *flops};
    const auto known =
        std::find_if(of_each_model.begin(), of_each_model.end(),
                     [&](const RunView* r) { return r->run.work.model == work.model; });
    if (known == of_each_model.end()) {
      of_each_model.push_back(run);
    } else if (drawn_rather(*run) >= drawn_rather(**known)) {
      *known = run;
    }
  }
  std::vector<Sentence> sentences;
  for (const auto& [image, models] : by_image) sentences.push_back(range_sentence(image, models));
  add_exhibit(section, input.data, table_named("complexity"), "complexity-networks", runs);
  if (const auto text = paragraph_of(sentences)) section.blocks.emplace_back(*text);
  add_exhibit(section, input.data, figure_named("network"), "complexity-network", of_each_model);
  return section;
}

}  // namespace ridgeline::report
