#include "report/analysis/judge.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/judging.h"

namespace ridgeline::report {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool fits_one(const Data& data, const RunView& run, const std::string& field,
              const std::string& value) {
  const std::string& device = run.run.executor.device;
  if (field == "machine") return data.machine_of(run).name == value;
  if (field == "device" && value == "gpu") return device != "cpu" && !device.empty();
  if (field == "device" && device.starts_with(value + ":")) return true;
  return run.word(field) == value || ridgeline::fits(run.run, {{field, value}});
}

// Why items of these parts were left out, each reason once.
std::string reasons(const StudyView& study, const std::vector<std::string>& parts) {
  std::vector<std::string> why;
  for (const StudyItemRecord& item : study.items) {
    if (item.status == ItemStatus::done || item.reason.empty()) continue;
    const std::string part = item.key.substr(0, item.key.find('/'));
    if (!parts.empty() && !has(parts, part)) continue;
    if (!has(why, item.reason)) why.push_back(item.reason);
  }
  return list_text(why, 2);
}

std::string verdict_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::confirmed:
      return "confirmed";
    case Outcome::not_confirmed:
      return "not confirmed";
    case Outcome::undecided:
      return "undecided";
  }
  return "undecided";
}

struct Test {
  std::string_view name;
  Answer (*answer)(const JudgeInput& input);
};
constexpr std::array<Test, 7> kTests = {{
    {"faster", judge_faster},
    {"speedup-varies", judge_speedup_varies},
    {"speedup-grows", judge_speedup_grows},
    {"efficiency-grows", judge_efficiency_grows},
    {"throughput-grows", judge_throughput_grows},
    {"bound", judge_bound},
    {"same-accuracy", judge_same_accuracy},
}};

}  // namespace

bool fits(const Data& data, const RunView& run, const std::string& condition) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string& part : split(condition, ',')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) {
      fields.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    } else if (fields.empty()) {
      return condition.empty();
    } else {
      fields.back().second += "," + part;  // "hidden=64,32" is one condition
    }
  }
  return std::ranges::all_of(fields, [&](const auto& field) {
    const std::vector<std::string> values = split(field.second, '|');
    return std::ranges::any_of(
        values, [&](const std::string& value) { return fits_one(data, run, field.first, value); });
  });
}

Answer not_measured(const std::string& what) {
  Answer answer;
  answer.evidence.say("Not measured here: " + what + ".");
  return answer;
}

std::optional<double> axis_place(const RunView& run, const std::string& axis) {
  const std::optional<double> value = run.number(axis);
  if (!value || (axis != "training_flops" && axis != "forward_flops")) return value;
  if (run.run.work.batch < 1) return std::nullopt;
  return *value / static_cast<double>(run.run.work.batch);
}

std::string axis_words(const std::string& axis) {
  if (axis == "training_flops") return "the FLOPs of a sample";
  if (axis == "parameters") return "the number of parameters";
  if (axis == "samples") return "the size of the data set";
  if (axis == "batch") return "the batch";
  if (axis == "image") return "the size of the image";
  std::string words = axis;
  std::replace(words.begin(), words.end(), '_', ' ');
  return "the " + words;
}

std::string axis_value(const std::string& axis, double value) {
  if (axis == "training_flops") return rate_words(value, "FLOP") + " a sample";
  if (axis == "parameters") return plain_text(value) + " parameters";
  if (axis == "samples") return plain_text(value) + " samples";
  std::string words = axis;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words + " " + plain_text(value);
}

Judgement judge(const Data& data, const StudyView& study, const study::Hypothesis& hypothesis) {
  const auto test = std::ranges::find(kTests, hypothesis.test, &Test::name);
  ensure(test != kTests.end(), "there is no test '{}', which hypothesis '{}' asks for",
         hypothesis.test, hypothesis.id);
  Runs runs;
  for (const RunView* run : study.runs) {
    const std::vector<std::string>& parts = hypothesis.parts;
    if (parts.empty() || has(parts, run->part)) {
      runs.push_back(run);
    }
  }
  runs = newest_of(runs);
  // A condition that no run fits: a device that no machine has.
  const auto is_absent = [&](const std::string& side) {
    return side.find('=') != std::string::npos &&
           std::ranges::none_of(runs, [&](const RunView* run) { return fits(data, *run, side); });
  };
  const bool tested = !runs.empty() && !is_absent(hypothesis.of) && !is_absent(hypothesis.than);
  Wording wording(runs);
  Answer answer = runs.empty() ? not_measured("none of its runs was made")
                               : test->answer({.data = data,
                                               .hypothesis = hypothesis,
                                               .runs = std::move(runs),
                                               .wording = std::move(wording)});
  if (answer.outcome == Outcome::undecided) {
    const std::string why = reasons(study, hypothesis.parts);
    if (!why.empty()) {
      Prose left_out;
      left_out.say("Left out were runs for this reason: " + why + ".");
      answer.evidence.add(left_out);
    }
  }
  return {.statement = hypothesis.statement,
          .verdict = verdict_name(answer.outcome),
          .pieces = answer.evidence.pieces(),
          .tested = tested};
}

}  // namespace ridgeline::report
