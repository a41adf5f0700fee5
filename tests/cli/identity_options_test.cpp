// What a run was follows from its options: an option that changes what is computed, or who computes
// it, changes the stored identity; any other option leaves it as it is. The options are those of
// the parser itself: a new one without an entry here fails.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "store/identity_fields.h"
#include "store/store.h"
#include "support/program.h"

namespace ridgeline {
namespace {

enum class Changes {
  work,      // what is computed
  executor,  // who computes it and how
  both,
  nothing,
  untried,  // cannot be tried here; the reason stands beside it
};

struct OptionCase {
  Changes changes;
  std::string words;        // that give it, in the form "--batch 8"
  std::string before = {};  // words that the command needs for it, in the run without it too
};

using OptionCases = std::map<std::string, OptionCase>;

// Options of all three commands.
OptionCases shared_cases() {
  return {
      {"--help", {Changes::untried, "prints the help"}},
      {"--model", {Changes::work, "--model mnist_cnn"}},
      {"--backend", {Changes::executor, "--backend reference"}},
      {"--device", {Changes::nothing, "--device cpu"}},         // the default; another needs a GPU
      {"--precision", {Changes::nothing, "--precision fp32"}},  // the cpu has no other
      {"--batch", {Changes::work, "--batch 8"}},
      {"--set", {Changes::work, "--set hidden=9"}},
      {"--init", {Changes::work, "--init he"}},
      {"--classes", {Changes::work, "--classes 7"}},
      {"--seed", {Changes::nothing, "--seed 5"}},  // runs of other seeds are repetitions
      {"--threads", {Changes::executor, "--threads 2"}},
      {"--freeze", {Changes::work, "--freeze *bias"}},
      {"--recompute", {Changes::executor, "--recompute"}},
      {"--deterministic", {Changes::executor, "--deterministic"}},
      {"--no-pass", {Changes::executor, "--no-pass fusion"}},
      {"--print-plan", {Changes::nothing, "--print-plan"}},
      {"--explain", {Changes::nothing, "--explain"}},
      {"--image", {Changes::work, "--image 13x13"}},
      {"--normalize", {Changes::work, "--normalize mnist"}},
      {"--optimizer", {Changes::work, "--optimizer adam"}},
      {"--lr", {Changes::work, "--lr 0.02"}},
      {"--momentum", {Changes::work, "--momentum 0.5"}},
      {"--nesterov", {Changes::work, "--nesterov"}},
      {"--weight-decay", {Changes::work, "--weight-decay 0.001"}},
      {"--label-smoothing", {Changes::work, "--label-smoothing 0.1"}},
      {"--telemetry", {Changes::nothing, "--telemetry 5"}},
      {"--store", {Changes::untried, "names the file that all runs here go to"}},
      {"--no-store", {Changes::untried, "leaves no run behind"}},
      {"--env-label", {Changes::nothing, "--env-label desk"}},
      {"--label", {Changes::nothing, "--label mine"}},
      {"--study-item", {Changes::nothing, "--study-item u k"}},
      {"--json", {Changes::nothing, "--json"}},
      {"--csv", {Changes::nothing, "--csv out.csv"}},
      {"--wide", {Changes::nothing, "--wide"}},
  };
}

OptionCases with(OptionCases cases, const OptionCases& more) {
  for (const auto& [name, each] : more) cases[name] = each;
  return cases;
}

OptionCases train_cases() {
  return with(
      shared_cases(),
      {
          {"--data", {Changes::work, "--data synthetic:1x12x12:4:48 --image 12x12"}},
          {"--classes", {Changes::work, "--data synthetic:1x12x12:5:40"}},
          {"--validation", {Changes::work, "--validation 8"}},
          {"--limit", {Changes::work, "--limit 24"}},
          {"--augment", {Changes::work, "--augment flip"}},
          {"--flip", {Changes::work, "--flip"}},
          {"--workers", {Changes::executor, "--workers 3"}},
          {"--decoder", {Changes::untried, "another than cpu needs a GPU"}},
          {"--strict", {Changes::nothing, "--strict"}},
          {"--epochs", {Changes::work, "--epochs 2"}},
          {"--schedule", {Changes::work, "--schedule cosine"}},
          {"--step-size", {Changes::work, "--step-size 2", "--schedule step"}},
          {"--gamma", {Changes::work, "--gamma 0.5", "--schedule step"}},
          {"--warmup", {Changes::work, "--warmup 1", "--epochs 2"}},
          {"--weights", {Changes::work, "--weights first.safetensors"}},
          {"--checkpoint", {Changes::nothing, "--checkpoint saved"}},
          {"--checkpoint-every", {Changes::nothing, "--checkpoint-every 2 --checkpoint often"}},
          {"--resume", {Changes::work, "--resume", "--epochs 2 --checkpoint going"}},
          {"--last-batch", {Changes::work, "--last-batch drop"}},
          {"--loss-scale", {Changes::untried, "belongs to fp16, which needs a GPU"}},
          {"--full-batch", {Changes::both, "--full-batch"}},
          {"--iterations", {Changes::work, "--iterations 3", "--full-batch"}},
          {"--eval-batch", {Changes::nothing, "--eval-batch 4"}},
          {"--eval-every", {Changes::nothing, "--eval-every 2"}},
          {"--target-accuracy", {Changes::work, "--target-accuracy 99%"}},
          {"--confusion", {Changes::nothing, "--confusion"}},
          {"--tensorboard", {Changes::nothing, "--tensorboard board"}},
          {"--tensorboard-every", {Changes::nothing, "--tensorboard-every 2"}},
          {"--micro-batch", {Changes::work, "--micro-batch 2"}},
          {"--clip-norm", {Changes::work, "--clip-norm 0.5"}},
          {"--ranks", {Changes::executor, "--ranks 2"}},
          {"--bucket", {Changes::executor, "--bucket 0.01", "--ranks 2"}},
          {"--reduce", {Changes::executor, "--reduce bf16", "--ranks 2"}},
          {"--sync-batch-norm", {Changes::work, "--sync-batch-norm", "--ranks 2"}},
          {"--rank-timeout", {Changes::nothing, "--rank-timeout 60", "--ranks 2"}},
          {"--restarts", {Changes::nothing, "--restarts 1 --checkpoint again", "--ranks 2"}},
      });
}

OptionCases bench_cases() {
  return with(
      shared_cases(),
      {
          {"--data", {Changes::work, "--data synthetic:1x12x12:4:48 --image 12x12"}},
          {"--samples", {Changes::work, "--samples 64", "--loader"}},
          {"--batch", {Changes::work, "--batch full", "--loader --samples 16"}},
          {"--loader", {Changes::both, "--loader"}},
          {"--workers", {Changes::executor, "--workers 3", "--loader"}},
          {"--decoder", {Changes::untried, "another than cpu needs a GPU"}},
          {"--inference", {Changes::work, "--inference"}},
          {"--warmup", {Changes::nothing, "--warmup 2"}},
          {"--iterations", {Changes::nothing, "--iterations 7"}},
          {"--precision-target", {Changes::nothing, "--precision-target 5"}},
          {"--max-seconds", {Changes::nothing, "--max-seconds 1"}},
          {"--processes", {Changes::nothing, "--processes 2"}},
          {"--as-process", {Changes::untried, "leaves no run behind: its parent stores it"}},
          {"--ranks", {Changes::executor, "--ranks 2"}},
          {"--scaling", {Changes::work, "--scaling weak", "--ranks 2"}},
          {"--unconnected", {Changes::untried, "measures a second run"}},
          {"--bucket", {Changes::executor, "--bucket 0.01", "--ranks 2"}},
          {"--reduce", {Changes::executor, "--reduce bf16", "--ranks 2"}},
          {"--sync-batch-norm", {Changes::work, "--sync-batch-norm", "--ranks 2"}},
          {"--as-rank", {Changes::untried, "leaves no run behind: who started it stores it"}},
          {"--no-split", {Changes::nothing, "--no-split"}},
          {"--peer-timeout", {Changes::nothing, "--peer-timeout 30"}},
          {"--per-step", {Changes::nothing, "--per-step"}},
          {"--columns", {Changes::nothing, "--columns model,median"}},
          {"--tensorboard", {Changes::nothing, "--tensorboard board"}},
      });
}

OptionCases profile_cases() {
  return with(shared_cases(),
              {
                  {"--data", {Changes::work, "--data synthetic:1x12x12:4:48 --image 12x12"}},
                  {"--loader", {Changes::both, "--loader"}},
                  {"--workers", {Changes::executor, "--workers 3", "--loader"}},
                  {"--decoder", {Changes::untried, "another than cpu needs a GPU"}},
                  {"--inference", {Changes::work, "--inference"}},
                  {"--steps", {Changes::nothing, "--steps 3"}},
                  {"--ranks", {Changes::executor, "--ranks 2"}},
                  {"--bucket", {Changes::executor, "--bucket 0.01", "--ranks 2"}},
                  {"--reduce", {Changes::executor, "--reduce bf16", "--ranks 2"}},
                  {"--sync-batch-norm", {Changes::work, "--sync-batch-norm", "--ranks 2"}},
                  {"--by", {Changes::nothing, "--by layer"}},
                  {"--top", {Changes::nothing, "--top 2"}},
                  {"--trace", {Changes::nothing, "--trace trace.json"}},
                  {"--against", {Changes::nothing, "--against last"}},
                  {"--memory", {Changes::nothing, "--memory"}},
                  {"--columns", {Changes::nothing, "--columns op,time"}},
                  {"--counters", {Changes::nothing, "--counters"}},
                  {"--no-roof", {Changes::untried, "given in every run here: ceilings take long"}},
              });
}

class SlowIdentityOptions : public testing::ProgramTest {
 protected:
  // The options of a command, as its parser has them.
  [[nodiscard]] std::set<std::string> options_of(const std::string& command) {
    std::istringstream lines(run("options").out);
    std::set<std::string> names;
    for (std::string name, option, kind; lines >> name >> option >> kind;) {
      if (name == command) names.insert(option);
    }
    return names;
  }

  // The run that a call leaves in the store, the last one where there are several.
  [[nodiscard]] RunRecord run_of(const std::string& words) {
    const testing::Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, 0) << words << '\n' << outcome.err;
    return Store::open_existing(folder_ / "ridgeline.db").run("last");
  }

  void check(const std::string& command, const std::string& usual, const OptionCases& cases) {
    std::map<std::string, RunRecord> bases;
    for (const std::string& option : options_of(command)) {
      const auto found = cases.find(option);
      if (found == cases.end()) {
        ADD_FAILURE() << command << " has the option " << option
                      << ": say here whether it changes what a run is";
        continue;
      }
      const OptionCase& each = found->second;
      if (each.changes == Changes::untried) continue;
      const std::string words = command + " " + usual + " " + each.before + " ";
      auto base = bases.find(each.before);
      if (base == bases.end()) base = bases.emplace(each.before, run_of(words)).first;
      const RunRecord changed = run_of(words + each.words);
      const bool both = each.changes == Changes::both;
      EXPECT_EQ(changed.work != base->second.work, both || each.changes == Changes::work)
          << words + each.words;
      EXPECT_EQ(changed.executor != base->second.executor,
                both || each.changes == Changes::executor)
          << words + each.words;
    }
    for (const auto& [option, each] : cases) {
      EXPECT_TRUE(options_of(command).contains(option))
          << command << " has no option " << option << " any more";
    }
  }
};

TEST_F(SlowIdentityOptions, OfTrain) {
  const std::string usual =
      "mlp --data synthetic:1x12x12:4:40 --batch 6 --threads 1 --epochs 1 --telemetry 0";
  ASSERT_EQ(run("train " + usual + " --no-store --checkpoint first").code, 0);
  ASSERT_EQ(run("export mlp --checkpoint first --out first.safetensors").code, 0);
  check("train", usual, train_cases());
}

TEST_F(SlowIdentityOptions, OfBench) {
  check("bench",
        "mlp --image 1x12x12 --batch 6 --threads 1 --warmup 1 --iterations 3 --telemetry 0",
        bench_cases());
}

TEST_F(SlowIdentityOptions, OfProfile) {
  check("profile", "mlp --image 1x12x12 --batch 6 --threads 1 --steps 2 --no-roof --telemetry 0",
        profile_cases());
}

}  // namespace
}  // namespace ridgeline
