#include "support/audit_files.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "audit/facts.h"
#include "base/philox.h"

namespace ridgeline::testing {
namespace {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : sequence_(seed, RandomStream::synthetic, 24) {}

  std::size_t below(std::size_t bound) { return sequence_.below(bound); }
  double between(double low, double high) {
    return low + (high - low) * sequence_.uniform_double();
  }
  double normal() { return sequence_.normal(); }
  template <typename List>
  auto pick(const List& list) {
    return list[below(std::size(list))];
  }

 private:
  PhiloxSequence sequence_;
};

struct Machine {
  const char* name;
  double flops;  // that trainings reach on it
};
constexpr std::array<Machine, 4> kMachines = {{{"Tesla T4", 3.0e12},
                                               {"NVIDIA A100-SXM4-40GB", 3.0e13},
                                               {"NVIDIA GeForce RTX 4090", 2.5e13},
                                               {"NVIDIA H200", 6.0e13}}};
constexpr std::array<const char*, 4> kNetworks = {"resnet18", "resnet50", "mobilenet_v2",
                                                  "densenet121"};

const audit::NetworkFacts& network_facts(const std::string& name) {
  static audit::Facts facts;
  return *facts.network({.model = name, .image = std::nullopt, .classes = std::nullopt});
}

// Training time of a batch: a start for each step, and work at the machine's rate.
double batch_seconds(const std::string& network, const Machine& machine, double batch) {
  return 3e-3 + batch * network_facts(network).training_flops / machine.flops;
}

// A few percent, slowly changing, and an outlier now and then.
std::vector<double> noisy_times(Dice& dice, double seconds, std::size_t count) {
  const double spread = dice.between(0.005, 0.03);
  std::vector<double> times;
  double mood = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    mood = 0.7 * mood + 0.3 * dice.normal();
    double time = seconds * (1.0 + spread * (0.5 * mood + 0.5 * dice.normal()));
    if (dice.below(60) == 0) time *= dice.between(1.1, 1.6);
    // Another program gets the processor for a while: short steps become very long.
    if (dice.below(80) == 0) time += dice.between(0.005, 0.1) * (dice.below(3) == 0 ? 100.0 : 1.0);
    times.push_back(time);
  }
  return times;
}

// Rows of one iteration each, before they become text.
struct IterationRow {
  std::string model, device;
  double batch = 0.0, seconds = 0.0, rate = 0.0;
  std::size_t iteration = 0;
  double claimed = 100.0;
};

std::vector<IterationRow> iteration_rows(Dice& dice) {
  std::vector<IterationRow> rows;
  const std::size_t count = 60 + dice.below(60);
  const Machine machine = dice.pick(kMachines);
  for (std::size_t configuration = 0; configuration < 4; ++configuration) {
    const std::string model = kNetworks[configuration];
    const double batch = std::array{32.0, 64.0, 128.0}[dice.below(3)];
    std::size_t number = 0;
    for (const double seconds : noisy_times(dice, batch_seconds(model, machine, batch), count)) {
      rows.push_back({model, machine.name, batch, seconds, batch / seconds, number++,
                      static_cast<double>(count)});
    }
  }
  return rows;
}

// In one of several styles.
std::string iterations_text(const std::vector<IterationRow>& rows, Dice& dice) {
  const char separator = std::array{',', ';', '\t'}[dice.below(3)];
  const bool milli = dice.below(2) == 0, with_rate = dice.below(3) != 0;
  const bool windows = dice.below(3) == 0;
  const std::string end = windows ? "\r\n" : "\n";
  std::string text = windows ? "\xEF\xBB\xBF" : "";
  const auto line = [&](std::vector<std::string> cells) {
    std::string joined_cells;
    for (const std::string& cell : cells) {
      if (!joined_cells.empty()) joined_cells += separator;
      joined_cells += cell;
    }
    text += joined_cells + end;
  };
  std::vector<std::string> names = {"model",     "device",     "batch_size",
                                    "iteration", "iterations", milli ? "time_ms" : "step time (s)"};
  if (with_rate) names.push_back("img/s");
  line(names);
  for (const IterationRow& row : rows) {
    std::vector<std::string> cells = {row.model,
                                      row.device,
                                      fmt::format("{}", row.batch),
                                      fmt::format("{}", row.iteration),
                                      fmt::format("{}", row.claimed),
                                      fmt::format("{:.6f}", row.seconds * (milli ? 1e3 : 1.0))};
    if (with_rate) cells.push_back(fmt::format("{:.3f}", row.rate));
    line(cells);
  }
  return text;
}

using ChangeIterations = std::function<void(std::vector<IterationRow>&, Dice&)>;

std::string changed_iterations(std::uint64_t seed, const ChangeIterations& change) {
  Dice dice(seed);
  std::vector<IterationRow> rows = iteration_rows(dice);
  if (change) change(rows, dice);
  return iterations_text(rows, dice);
}

// Changes the times of the rows of one model.
void each_row_of(std::vector<IterationRow>& rows, const std::string& model,
                 const std::function<void(IterationRow&)>& change) {
  for (IterationRow& row : rows) {
    if (row.model != model) continue;
    change(row);
    row.rate = row.batch / row.seconds;
  }
}

// A row of a published table.
struct SummaryRow {
  std::string model, device, precision = "fp32", frozen = "none", dataset = "ImageNet";
  double batch = 64.0, seconds = 0.0, rate = 0.0, deviation = 0.0, repeats = 10.0;
  double parameters = 0.0, flops = 0.0, achieved = 0.0, speedup = 1.0, utilisation = 0.0;
  double memory = 0.0, accuracy = 0.0, efficiency = 0.0, intensity = 0.0, epoch_seconds = 0.0;
  double total_seconds = 0.0, epochs = 10.0, readings = 500.0;
};

std::vector<SummaryRow> summary_rows(Dice& dice) {
  std::vector<SummaryRow> rows;
  const std::size_t first = dice.below(3);
  const Machine slow = kMachines[0], fast = kMachines[1 + first];
  const double activations = dice.between(4.0e6, 8.0e6);
  for (const char* model : kNetworks) {
    for (const double batch : {32.0, 64.0, 128.0}) {
      for (const Machine& machine : {slow, fast}) {
        const audit::NetworkFacts& facts = network_facts(model);
        SummaryRow row;
        row.model = model;
        row.device = machine.name;
        row.batch = batch;
        row.seconds = batch_seconds(model, machine, batch) * dice.between(0.97, 1.03);
        row.rate = batch / row.seconds;
        row.deviation = row.seconds * dice.between(0.005, 0.02);
        row.parameters = facts.parameters;
        row.flops = 2.0 * facts.forward_macs;
        row.achieved = row.rate * facts.training_flops;
        row.speedup = machine.name == slow.name ? 1.0 : rows.back().seconds / row.seconds;
        row.utilisation = dice.between(0.9, 0.99);
        row.memory = 6e8 + 16.0 * facts.parameters + batch * activations * 10.0;
        row.accuracy = dice.between(0.62, 0.76);
        row.efficiency = row.achieved / (machine.flops * 3.0);
        row.epoch_seconds = 1'281'167.0 / row.rate;
        row.total_seconds = row.epochs * row.epoch_seconds * dice.between(1.01, 1.1);
        rows.push_back(row);
      }
    }
  }
  return rows;
}

// The columns of a table: all tables have the first few.
using Columns = std::vector<std::pair<std::string, std::function<double(const SummaryRow&)>>>;

std::string summary_text(const std::vector<SummaryRow>& rows, const Columns& more) {
  std::string text =
      "model,device,precision,batch,dataset,frozen layers,batch time (ms),"
      "throughput (img/s)";
  for (const auto& [name, value] : more) text += ',' + name;
  text += '\n';
  for (const SummaryRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{:.3f},{:.2f}", row.model, row.device, row.precision,
                        row.batch, row.dataset, row.frozen, row.seconds * 1e3, row.rate);
    for (const auto& [name, value] : more) {
      const double number = value(row);
      text += std::isnan(number) ? "," : fmt::format(",{:.6g}", number);
    }
    text += '\n';
  }
  return text;
}

const Columns& column_choices() {
  static const Columns columns = {
      {"params (M)", [](const SummaryRow& row) { return row.parameters / 1e6; }},
      {"FLOPs (G)", [](const SummaryRow& row) { return row.flops / 1e9; }},
      {"achieved TFLOP/s", [](const SummaryRow& row) { return row.achieved / 1e12; }},
      {"speedup", [](const SummaryRow& row) { return row.speedup; }},
      {"GPU utilisation (%)", [](const SummaryRow& row) { return row.utilisation * 100.0; }},
      {"utilisation readings", [](const SummaryRow& row) { return row.readings; }},
      {"memory (MiB)", [](const SummaryRow& row) { return row.memory / 1048576.0; }},
      {"top-1 accuracy (%)", [](const SummaryRow& row) { return row.accuracy * 100.0; }},
      {"efficiency (%)", [](const SummaryRow& row) { return row.efficiency * 100.0; }},
      {"std (ms)", [](const SummaryRow& row) { return row.deviation * 1e3; }},
      {"runs", [](const SummaryRow& row) { return row.repeats; }},
      {"epoch time (s)", [](const SummaryRow& row) { return row.epoch_seconds; }},
      {"epochs", [](const SummaryRow& row) { return row.epochs; }},
      {"total time (h)", [](const SummaryRow& row) { return row.total_seconds / 3600.0; }}};
  return columns;
}

using ChangeSummary = std::function<void(SummaryRow&, Dice&)>;

std::string changed_summary(std::uint64_t seed, const ChangeSummary& change,
                            const std::vector<std::string>& without = {}) {
  Dice dice(seed);
  std::vector<SummaryRow> rows = summary_rows(dice);
  Columns columns;
  for (const auto& column : column_choices()) {
    if (std::find(without.begin(), without.end(), column.first) == without.end()) {
      columns.push_back(column);
    }
  }
  for (SummaryRow& row : rows) change(row, dice);
  return summary_text(rows, columns);
}

bool is_slow_machine(const SummaryRow& row) { return row.device == kMachines[0].name; }

// Epochs of trainings with an accuracy that rises and a first epoch like the others.
struct EpochFile {
  double final_shift = 0.0;  // final accuracy less that of the last epoch
  bool mean = false, chance = false, first_slow = false;
};

std::string epochs_text(std::uint64_t seed, const EpochFile& file) {
  Dice dice(seed);
  std::string text = "run,model,dataset,epoch,train_loss,test accuracy,final accuracy,seconds\n";
  for (int run = 1; run <= 3; ++run) {
    const double top = dice.between(0.85, 0.93), seconds = dice.between(20.0, 60.0);
    std::vector<double> accuracies;
    double sum = 0.0;
    for (int epoch = 1; epoch <= 10; ++epoch) {
      const double accuracy = file.chance
                                  ? 0.1 + 0.002 * dice.normal()
                                  : top - 0.5 * std::exp(-0.4 * epoch) + 0.003 * dice.normal();
      accuracies.push_back(accuracy);
      sum += accuracy;
    }
    const double last = file.mean ? sum / 10.0 : accuracies.back();
    for (int epoch = 1; epoch <= 10; ++epoch) {
      const double slow = file.first_slow && epoch == 1 ? dice.between(1.5, 3.0) : 1.0;
      text += fmt::format("{},resnet18,CIFAR-10,{},{:.4f},{:.4f},{:.4f},{:.3f}\n", run, epoch,
                          2.3 * std::exp(-0.3 * epoch) + 0.01 * dice.between(0.0, 1.0),
                          accuracies[static_cast<std::size_t>(epoch - 1)], last,
                          seconds * slow * (1.0 + 0.01 * dice.normal()));
    }
  }
  return text;
}

}  // namespace

std::string healthy_iterations(std::uint64_t seed) { return changed_iterations(seed, {}); }

std::string healthy_summary(std::uint64_t seed) {
  return changed_summary(seed, [](SummaryRow&, Dice&) {});
}

std::string healthy_epochs(std::uint64_t seed) { return epochs_text(seed, {}); }

std::span<const PlantedError> planted_errors() {
  using Rows = std::vector<IterationRow>;
  static const std::vector<PlantedError> errors = {
      {"EveryTenthRowFaster", "periodic-samples",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice& dice) {
           const double factor = dice.between(1.8, 2.8);
           each_row_of(rows, "resnet18", [&](IterationRow& row) {
             if (row.iteration % 10 == 3) row.seconds /= factor;
           });
         });
       }},
      {"WarmUpInside", "warm-up",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice& dice) {
           const double factor = dice.between(2.0, 20.0);
           each_row_of(rows, "resnet50", [&](IterationRow& row) {
             if (row.iteration == 0) row.seconds *= factor;
           });
         });
       }},
      {"CoarseClock", "clock-resolution",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice& dice) {
           const double tick = rows.front().seconds * dice.between(0.06, 0.3);
           each_row_of(rows, "resnet18", [&](IterationRow& row) {
             const double exact = row.seconds / tick + dice.between(-0.5, 0.5);
             row.seconds = std::max(1.0, std::round(exact)) * tick;
           });
         });
       }},
      {"FewerIterations", "iteration-count",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice&) {
           std::erase_if(rows, [](const IterationRow& row) {
             return row.model == "resnet50" && row.iteration >= 39;
           });
         });
       }},
      {"SecondsAmongMilliseconds", "mixed-units",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice&) {
           each_row_of(rows, "densenet121", [](IterationRow& row) {
             if (row.iteration % 3 == 1) row.seconds /= 1000.0;
           });
         });
       }},
      {"RowsTwice", "duplicate-rows",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice& dice) {
           const Rows part(rows.begin(), rows.begin() + 5 + static_cast<int>(dice.below(20)));
           rows.insert(rows.end(), part.begin(), part.end());
         });
       }},
      {"NegativeTime", "impossible-values",
       [](std::uint64_t seed) {
         return changed_iterations(
             seed, [](Rows& rows, Dice& dice) { rows[dice.below(rows.size())].seconds *= -1.0; });
       }},
      {"AboveTheRoof", "above-roof",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice& dice) {
           const double factor = dice.between(12.0, 25.0);
           each_row_of(rows, "resnet50", [&](IterationRow& row) { row.seconds /= factor; });
         });
       }},
      {"WaitingForTheLoader", "far-below-roof",
       [](std::uint64_t seed) {
         return changed_iterations(seed, [](Rows& rows, Dice&) {
           each_row_of(rows, "densenet121", [](IterationRow& row) {
             row.seconds = row.batch / 25.0 * (1.0 + 0.1 * (row.seconds - std::floor(row.seconds)));
           });
         });
       }},
      {"RateOfAnotherBatch", "rate-times-time",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (row.model == "resnet18") row.rate *= 2.0;
         });
       }},
      {"MillisecondsAsSeconds", "mixed-units",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (row.model == "resnet50") row.seconds /= 1000.0;
         });
       }},
      {"MacsAsFlops", "flops",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) { row.flops /= 2.0; });
       }},
      {"ForwardCountedAsTraining", "flops",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           row.achieved = row.rate * network_facts(row.model).forward_flops;
         });
       }},
      {"WrongParameters", "parameters",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) { row.parameters *= 4.0; });
       }},
      {"OtherBatchOnOneDevice", "unlike-work",
       [](std::uint64_t seed) {
         return changed_summary(seed,
                                [](SummaryRow& row, Dice&) {
                                  if (is_slow_machine(row)) row.batch *= 8.0;
                                },
                                {"memory (MiB)"});
       }},
      {"FrozenOnOneDevice", "unlike-work",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (is_slow_machine(row)) row.frozen = "features";
         });
       }},
      {"OtherPrecisionOnOneDevice", "unlike-work",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (!is_slow_machine(row)) row.precision = "amp";
         });
       }},
      {"WrongSpeedUp", "speed-up",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (!is_slow_machine(row) && row.model == "resnet50") row.speedup *= 1.37;
         });
       }},
      {"SpeedUpWithinNoise", "speed-up",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           row.repeats = 1.0;
           row.deviation = 0.3 * row.seconds;
           row.speedup = is_slow_machine(row) ? 1.0 : 1.05;
         });
       }},
      {"AboveHundredPercent", "efficiency",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice& dice) {
           if (row.batch > 100.0) row.efficiency = dice.between(1.1, 4.0);
         });
       }},
      {"UtilisationAfterTheRun", "utilisation",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice& dice) {
           row.utilisation = 0.01 * static_cast<double>(dice.below(4));
         });
       }},
      {"OneSnapshot", "utilisation",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) { row.readings = 1.0; });
       }},
      {"MemoryZero", "memory",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (row.batch < 40.0) row.memory = 0.0;
         });
       }},
      {"MemoryOfTheDevice", "memory",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice& dice) {
           row.memory = 15.0e9 * (1.0 + 0.002 * dice.normal());
         });
       }},
      {"MegabytesAndMebibytes", "mixed-units",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (!is_slow_machine(row)) row.memory /= 1.048576;
         });
       }},
      {"LargerBatchTakesLessTime", "scaling",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) {
           if (row.batch > 100.0 && row.model == "resnet18") {
             row.seconds /= 6.0;
             row.rate = row.batch / row.seconds;
           }
         });
       }},
      {"TotalOfFewerEpochs", "totals",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice&) { row.total_seconds *= 0.5; });
       }},
      {"TooFewRepeats", "few-samples",
       [](std::uint64_t seed) {
         return changed_summary(seed, [](SummaryRow& row, Dice& dice) {
           row.repeats = 1.0 + static_cast<double>(dice.below(3));
         });
       }},
      {"FinalIsMean", "final-accuracy",
       [](std::uint64_t seed) { return epochs_text(seed, {.mean = true}); }},
      {"AccuracyAtChance", "chance",
       [](std::uint64_t seed) { return epochs_text(seed, {.chance = true}); }},
      {"FirstEpochCompiles", "warm-up",
       [](std::uint64_t seed) { return epochs_text(seed, {.first_slow = true}); }},
      {"PartsSumExactly", "overlapping-parts",
       [](std::uint64_t seed) {
         Dice dice(seed);
         std::string text = "operation,device,time (ms)\n";
         double total = 0.0;
         for (const char* name : {"matrix multiplication", "ReLU", "softmax", "backward pass"}) {
           const double time = std::round(100.0 * dice.between(1.0, 9.0)) / 100.0;
           total += time;
           text += fmt::format("{},cpu,{:.2f}\n", name, time);
         }
         return text + fmt::format("total,cpu,{:.2f}\n", total);
       }},
      {"DevicesAtTheLoadersSpeed", "equal-devices",
       [](std::uint64_t seed) {
         Dice dice(seed);
         const double rate = dice.between(3000.0, 9000.0);
         std::string text = "backend,model,batch,throughput\n";
         for (const char* name : {"PyTorch CPU", "PyTorch CUDA", "PyTorch MPS"}) {
           text += fmt::format("{},mnist_cnn,512,{:.1f}\n", name, rate * dice.between(0.92, 1.08));
         }
         return text;
       }},
      {"GigaflopPerMegabyte", "intensity",
       [](std::uint64_t seed) {
         Dice dice(seed);
         std::string text = "model,batch,arithmetic intensity (FLOP/byte)\n";
         for (const char* name : {"resnet18", "resnet50"}) {
           text += fmt::format("{},64,{:.5f}\n", name, dice.between(0.01, 0.06));
         }
         return text;
       }},
      {"MoreSamplesThanTheFile", "data-size",
       [](std::uint64_t seed) {
         Dice dice(seed);
         return fmt::format("model,train samples,dataset rows\nmlp,{},{}\n",
                            50'000 + dice.below(9'000), 42'000);
       }},
  };
  return errors;
}

}  // namespace ridgeline::testing
