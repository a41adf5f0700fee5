// What a command tells the study that started it, and what a study makes of one that cannot tell.

#include <fcntl.h>
#include <fmt/core.h>

#include "lab/outcome.h"
#include "study/child.h"
#include "study/runner.h"
#include "support/program.h"

namespace ridgeline::study {
namespace {

using Status = ItemStatus;
using ridgeline::Outcome;

const CandidateOutcome kTooLarge = {"mlp", "512", "native", "cpu", "too little memory"};
const CandidateOutcome kCrashed = {"mlp", "64", "auto", "cuda:0", "it broke"};

TEST(StudyOutcome, IsReadAsItWasWritten) {
  const Outcome told{Status::left_out, "one\nline", {kTooLarge}, {kCrashed}};
  const std::string json = outcome_json(told);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  const std::optional<Outcome> read = parse_outcome(json);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, Status::left_out);
  EXPECT_EQ(read->reason, "one\nline");
  ASSERT_EQ(read->left_out.size(), 1U);
  EXPECT_EQ(read->left_out[0].batch, "512");
  ASSERT_EQ(read->failed.size(), 1U);
  EXPECT_EQ(read->failed[0].device, "cuda:0");
  EXPECT_EQ(read->failed[0].reason, "it broke");
  EXPECT_TRUE(parse_outcome(outcome_json({Status::failed, "caf\xe9"})));
}

TEST(StudyOutcome, HalfAnOutcomeIsNone) {
  const std::string json = outcome_json({Status::done});
  for (std::size_t size = 0; size + 2 < json.size(); ++size) {
    EXPECT_FALSE(parse_outcome(json.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse_outcome("[]"));
  EXPECT_FALSE(parse_outcome(R"({"status": 1})"));
}

TEST(StudyOutcome, ProcessesOfTheCommandDoNotInheritTheDescriptor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string variable(kOutcomeVariable);
  setenv(variable.c_str(), std::to_string(ends[1]).c_str(), 1);
  open_outcome();
  EXPECT_EQ(std::getenv(variable.c_str()), nullptr);
  EXPECT_EQ(fcntl(ends[1], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  note_left_out(kTooLarge);
  note_failed(kCrashed);
  tell_outcome(Status::failed);
  // It is told once: the descriptor is closed.
  tell_outcome(Status::done);
  EXPECT_EQ(fcntl(ends[1], F_GETFD), -1);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  close(ends[0]);
  const std::optional<Outcome> told = parse_outcome(text);
  ASSERT_TRUE(told) << text;
  EXPECT_EQ(told->status, Status::failed);
  EXPECT_EQ(told->left_out.size(), 1U);
  EXPECT_EQ(told->failed.size(), 1U);
}

TEST(StudyOutcome, NothingIsToldWhereNoStudyListens) {
  open_outcome();
  note_failed(kCrashed);
  tell_outcome(Status::done);
  // A descriptor that is not open is none, and neither are the usual three.
  for (const char* file : {"987", "1", "nonsense"}) {
    setenv(std::string(kOutcomeVariable).c_str(), file, 1);
    open_outcome();
    ::testing::internal::CaptureStdout();
    tell_outcome(Status::done);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  }
}

// A shell's line that tells an outcome.
std::string telling(const Outcome& outcome) {
  std::string json = outcome_json(outcome);
  json.pop_back();
  return fmt::format("printf '%s' '{}' > /dev/fd/${}\n", json, kOutcomeVariable);
}

Outcome outcome_of_script(const std::string& script) {
  const ChildEnding ending = run_child({"/bin/sh", "-c", script}, [] { return true; });
  EXPECT_FALSE(ending.stopped);
  return ending.outcome;
}

TEST(StudyChild, TellsHowItEnded) {
  const Outcome done = outcome_of_script("echo words; " + telling({Status::done, "", {kTooLarge}}));
  EXPECT_EQ(done.status, Status::done);
  EXPECT_EQ(done.left_out.size(), 1U);
  const Outcome left = outcome_of_script(telling({Status::left_out, "too large"}) + "exit 2");
  EXPECT_EQ(left.status, Status::left_out);
  EXPECT_EQ(left.reason, "too large");
  const Outcome failed = outcome_of_script(telling({Status::failed, "no such file"}) + "exit 2");
  EXPECT_EQ(failed.status, Status::failed);
  EXPECT_EQ(failed.reason, "no such file");
}

TEST(StudyChild, FailedCandidatesAreTheReason) {
  const Outcome outcome =
      outcome_of_script(telling({Status::failed, "", {}, {kCrashed, kTooLarge}}) + "exit 1");
  EXPECT_EQ(outcome.reason, "auto on cuda:0: it broke; native on cpu: too little memory");
}

TEST(StudyChild, WithoutAnOutcomeItFailed) {
  const auto reason_of = [](const std::string& script) {
    const Outcome outcome = outcome_of_script(script);
    EXPECT_EQ(outcome.status, Status::failed) << script;
    return outcome.reason;
  };
  EXPECT_EQ(reason_of("exit 3"), "exit code 3");
  EXPECT_EQ(reason_of("exit 0"), "exit code 0");
  EXPECT_EQ(reason_of("printf 'memory is short\\nlast words\\n\\n' >&2; exit 3"),
            "exit code 3: last words");
  EXPECT_EQ(reason_of("echo about to fall >&2; kill -9 $$"),
            "killed by signal 9 (SIGKILL): about to fall");
  // One that fell after it had told that all was well.
  EXPECT_EQ(reason_of(telling({Status::done}) + "kill -9 $$"), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(reason_of(telling({Status::done}) + "exit 1"), "exit code 1");
  EXPECT_EQ(reason_of("echo '{\"status\":' > /dev/fd/$RIDGELINE_OUTCOME; exit 1"), "exit code 1");
}

TEST(StudyChild, IsEndedWhenTheStudyIs) {
  int asked = 0;
  const ChildEnding ending =
      run_child({"/bin/sh", "-c", "exec sleep 60"}, [&] { return ++asked < 3; });
  EXPECT_TRUE(ending.stopped);
}

// The program itself, as a study calls it.
Outcome outcome_of_program(const std::string& arguments) {
  std::vector<std::string> words = testing::words_of(arguments);
  words.insert(words.begin(), testing::program());
  return run_child(std::move(words), [] { return true; }).outcome;
}

TEST(StudyProgram, TellsWhatIsTooLargeForTheMachine) {
  const Outcome outcome = outcome_of_program("bench mlp --batch 1000000000 --store none");
  EXPECT_EQ(outcome.status, Status::left_out) << outcome.reason;
  EXPECT_TRUE(outcome.reason.starts_with("too little memory for batch 1000000000"))
      << outcome.reason;
}

TEST(StudyProgram, TellsWhatFailed) {
  // "memory" in a message makes no lack of memory.
  const Outcome outcome = outcome_of_program("train mlp --data ./memory.csv --store none");
  EXPECT_EQ(outcome.status, Status::failed);
  EXPECT_NE(outcome.reason.find("./memory.csv"), std::string::npos) << outcome.reason;
}

TEST(StudyProgram, TellsThatAllIsDone) {
  EXPECT_EQ(outcome_of_program("models").status, Status::done);
}

TEST(StudyProgram, TellsWhichCandidatesABenchLeftOut) {
  const Outcome outcome = outcome_of_program(
      "bench mlp --batch 4,1000000000 --backend native --warmup 0 --iterations 3 --store none");
  EXPECT_EQ(outcome.status, Status::done) << outcome.reason;
  ASSERT_EQ(outcome.left_out.size(), 1U);
  const CandidateOutcome& left = outcome.left_out[0];
  EXPECT_EQ(left.model, "mlp");
  EXPECT_EQ(left.batch, "1000000000");
  EXPECT_EQ(left.backend, "native");
  EXPECT_EQ(left.device, "cpu");
  EXPECT_TRUE(left.reason.starts_with("too little memory")) << left.reason;
  EXPECT_TRUE(outcome.failed.empty());
}

class SilentObserver final : public StudyObserver {
 public:
  void begun(const StudyItemRecord&) override {}
  void ended(const StudyItemRecord&) override {}
  bool go_on() override { return true; }
};

// A study whose program is a script: an item is one of its words.
class StudyOutcomeRun : public testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    std::string script = "#!/bin/sh\ncase $1 in\n";
    script += "good) " + telling({Status::done}) + ";;\n";
    script += "some) " + telling({Status::done, "", {kTooLarge}}) + ";;\n";
    script += "large) " + telling({Status::left_out, "too little memory"}) + "exit 2;;\n";
    script += "bad) " + telling({Status::failed, std::string(600, 'x') + "\nmore"}) + "exit 1;;\n";
    script += "fallen) kill -11 $$;;\nesac\n";
    std::ofstream(folder_ / "program") << script;
    std::filesystem::permissions(folder_ / "program", std::filesystem::perms::owner_all);
    EnvironmentRecord environment;
    environment.key = "here";
    Store(folder_ / "a.db").add(environment);
  }

  // The items of a study after it ran.
  std::vector<StudyItemRecord> run_items(const std::vector<std::string>& words) {
    std::vector<PlannedItem> plan(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      plan[i].words = {words[i]};
      plan[i].record.number = static_cast<std::int64_t>(i);
      plan[i].record.key = "p/" + words[i];
      plan[i].record.command = words[i];
    }
    Study study;
    study.definition.name = "scripted";
    StudyRun run(study, Scale::small, std::move(plan),
                 {.store = folder_ / "a.db",
                  .program = folder_ / "program",
                  .environment = "here",
                  .environment_label = "",
                  .options = ""});
    SilentObserver observer;
    EXPECT_TRUE(run.run(observer));
    finished_ = !run.record().finished.empty();
    return Store(folder_ / "a.db").study_items(run.record().uuid);
  }

  bool finished_ = false;
};

TEST_F(StudyOutcomeRun, EveryOutcomeIsRecorded) {
  const std::vector<StudyItemRecord> items = run_items({"good", "some", "large", "bad", "fallen"});
  ASSERT_EQ(items.size(), 6U);
  EXPECT_EQ(items[0].status, ItemStatus::done);
  EXPECT_EQ(items[0].reason, "");
  EXPECT_EQ(items[1].status, ItemStatus::done);
  EXPECT_EQ(items[2].key, "p/some/batch=512/native");
  EXPECT_EQ(items[2].status, ItemStatus::left_out);
  EXPECT_EQ(items[2].title, "mlp, batch 512: native");
  EXPECT_EQ(items[2].reason, "too little memory");
  EXPECT_FALSE(items[2].seconds);
  EXPECT_EQ(items[3].status, ItemStatus::left_out);
  EXPECT_EQ(items[3].reason, "too little memory");
  EXPECT_EQ(items[4].status, ItemStatus::failed);
  EXPECT_EQ(items[4].reason, std::string(500, 'x') + " …");
  EXPECT_EQ(items[5].status, ItemStatus::failed);
  EXPECT_EQ(items[5].reason, "killed by signal 11 (SIGSEGV)");
  EXPECT_FALSE(finished_) << "what failed is to be tried again";
}

TEST_F(StudyOutcomeRun, WhatIsLeftOutEndsAStudy) {
  EXPECT_EQ(run_items({"some", "large"}).size(), 3U);
  EXPECT_TRUE(finished_);
}

}  // namespace
}  // namespace ridgeline::study
