// What the networks ask for, by whatever executor.

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

  [[nodiscard]] bool same_network(const Cost& other) const {
    const Work &a = run->run.work, &b = other.run->run.work;
    return a.model == b.model && a.settings == b.settings;
  }
};

std::optional<double> sample_flops(const RunView& run) {
  const auto flops = run.number("training_flops");
  if (run.run.work.kind != "training" || !flops || run.run.work.batch < 1) return std::nullopt;
  return *flops / static_cast<double>(run.run.work.batch);
}

// "With samples of 3x64x64, a training step of squeezenet1_1 takes … a sample, one of resnet50 …"
Sentence range_sentence(const ImageShape& image, const std::vector<Cost>& costs) {
  const auto [least, most] = std::ranges::minmax_element(costs, {}, &Cost::flops);
  if (least->same_network(*most)) return std::nullopt;
  Runs runs;
  for (const Cost& cost : costs) runs.push_back(cost.run);
  const Wording wording(runs);
  return Prose()
      .say(fmt::format("With samples of {}, a training step of ", image.text()))
      .say(fmt::format("{} takes {} a sample", wording.work(*least->run),
                       rate_words(least->flops, "FLOP")),
           {least->run->run.id})
      .say(", one of ")
      .say(fmt::format("{} {}", wording.work(*most->run), rate_words(most->flops, "FLOP")),
           {most->run->run.id})
      .say(fmt::format(", {} times as many.", number_text(most->flops / least->flops)));
}

// A network is drawn once, however many settings of it were tried: where the steps of its plan are
// known, and with the options that it has by itself.
std::pair<bool, bool> drawn_rather(const RunView& run) {
  return {run.run.numbers.contains("plan_steps"), settings_text(run.run.work).empty()};
}

}  // namespace

Section complexity_section(const SectionInput& input) {
  Section section = titled("complexity", "Complexity of the networks");
  const Runs runs = shown_runs(input);
  std::map<ImageShape, std::vector<Cost>> by_image;
  Runs of_each_model;
  for (const RunView* run : runs) {
    const Work& work = run->run.work;
    if (const auto flops = sample_flops(*run)) {
      // What does not change the cost of the network is not told.
      const Cost cost{run, *flops};
      std::vector<Cost>& costs = by_image[work.image];
      if (std::ranges::none_of(costs, [&](const Cost& known) {
            return known.same_network(cost) && known.flops == cost.flops;
          })) {
        costs.push_back(cost);
      }
    }
    const auto known = std::ranges::find_if(
        of_each_model, [&](const RunView* r) { return r->run.work.model == work.model; });
    if (known == of_each_model.end()) {
      of_each_model.push_back(run);
    } else if (drawn_rather(*run) >= drawn_rather(**known)) {
      *known = run;
    }
  }
  std::vector<Sentence> sentences;
  for (const auto& [image, costs] : by_image) sentences.push_back(range_sentence(image, costs));
  if (const auto text = paragraph_of(sentences)) section.blocks.emplace_back(*text);
  Section rest = folded("complexity-all", "Work and layers of each network");
  add_exhibit(rest, input.data, {table_named("complexity"), "complexity-networks", runs});
  add_exhibit(rest, input.data, {figure_named("network"), "complexity-network", of_each_model});
  if (!rest.blocks.empty()) section.sections.push_back(std::move(rest));
  return section;
}

}  // namespace ridgeline::report
