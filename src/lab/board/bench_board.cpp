#include "lab/board/bench_board.h"

#include <cctype>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

std::string file_name(const std::string& text) {
  std::string safe = text;
  for (char& letter : safe) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (!plain && letter != '.' && letter != '-' && letter != '_') letter = '_';
  }
  return safe;
}

const char* tag_of(SampleKind kind) {
  switch (kind) {
    case SampleKind::warmup:
      return "time/warmup_seconds";
    case SampleKind::measured:
      return "time/step_seconds";
    case SampleKind::split:
      return "time/split_seconds";
    case SampleKind::queued:
      return "time/queued_seconds";
    case SampleKind::watched:
      return "time/watched_seconds";
  }
  return "?";
}

}  // namespace

std::vector<std::string> board_names(std::span<const Subject> subjects) {
  std::vector<std::string> names;
  std::map<std::string, int> times;
  for (const Subject& subject : subjects) {
    const Work& work = subject.work;
    std::string name = file_name(fmt::format("{}-{}-b{}-{}-{}-{}{}", work.model,
                                             subject.executor.backend, work.batch, work.precision,
                                             work.image.text(), subject.executor.device,
                                             work.kind == "training" ? "" : "-" + work.kind));
    const int time = ++times[name];
    if (time > 1) name += fmt::format("-{}", time);
    names.push_back(std::move(name));
  }
  return names;
}

BenchBoard::BenchBoard(std::filesystem::path folder, std::vector<Subject> subjects)
    : folder_(std::move(folder)),
      subjects_(std::move(subjects)),
      names_(board_names(subjects_)),
      runs_(subjects_.size()) {}

void BenchBoard::look_for_trouble(const Run& run) {
  if (trouble_.empty() && run.board) trouble_ = run.board->trouble();
}

void BenchBoard::group_begun(double now) {
  (void)now;
  wall_time_ = wall_time_now();
}

void BenchBoard::begun(std::size_t candidate) {
  Run& run = runs_[candidate];
  // In several processes each of them begins.
  if (run.board || !trouble_.empty()) return;
  try {
    run.board.emplace(folder_ / names_[candidate], wall_time_);
  } catch (const Error& error) {
    trouble_ = error.what();
    return;
  }
  const Subject& subject = subjects_[candidate];
  run.board->settings(settings_of(subject.work, subject.executor));
}

void BenchBoard::measured(std::size_t candidate, std::span<const Sample> samples) {
  Run& run = runs_[candidate];
  if (!run.board) return;
  const auto batch = static_cast<double>(subjects_[candidate].work.batch);
  for (const Sample& sample : samples) {
    const std::int64_t step = ++run.samples;
    const double end = sample.at_seconds + sample.wall_seconds;
    run.board->scalar(tag_of(sample.kind), step, end, sample.wall_seconds);
    const auto add = [&](const char* tag, const std::optional<double>& seconds) {
      if (seconds) run.board->scalar(tag, step, end, *seconds);
    };
    if (sample.kind == SampleKind::measured) {
      add("time/device_seconds", sample.device_seconds);
      add("time/data_wait", sample.data_wait_seconds);
      run.board->scalar("rate/samples_per_second", step, end, batch / sample.wall_seconds);
    }
    add("time/forward_seconds", sample.forward_seconds);
    add("time/backward_seconds", sample.backward_seconds);
    add("time/optimizer_seconds", sample.optimizer_seconds);
    run.board->step_ended(step, end);
  }
  look_for_trouble(run);
}

void BenchBoard::readings(std::size_t candidate, std::span<const Reading> readings) {
  Run& run = runs_[candidate];
  if (!run.board) return;
  run.board->readings(readings);
  look_for_trouble(run);
}

void BenchBoard::ended(std::size_t candidate, const Ending& ending) {
  (void)ending;
  Run& run = runs_[candidate];
  if (!run.board) return;
  run.board->flush();
  look_for_trouble(run);
}

}  // namespace ridgeline
