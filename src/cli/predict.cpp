// ridgeline predict: time, memory, energy and cost of a step on hardware that is not here.

#include "predict/predict.h"

#include <filesystem>

#include "base/error.h"
#include "base/parse.h"
#include "base/text_file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/predict_output.h"
#include "cli/predict_ranks.h"
#include "cli/tables.h"
#include "onnx/network.h"
#include "predict/shipped.h"
#include "report/exhibits/figure_frontier.h"
#include "report/pictures.h"

namespace ridgeline::cli {
namespace {

constexpr std::int64_t kUsualBatch = 64;

struct PredictOptions {
  std::vector<std::string> models, targets, precisions, batches;
  std::string image, backend, prices, learn, draw;
  std::optional<std::int64_t> classes, samples, epochs;
  std::vector<std::string> hardware, observed;
  std::string store = "ridgeline.db";
  OptimizerOptions optimizer;
  RankOptions ranks;
  OutputOptions output;
  std::int64_t top = 5;
  bool inference = false, check = false, no_shipped = false, no_store = false;
};

// What runs were measured, here and elsewhere.
struct Seen {
  std::vector<predict::Observation> runs;
  std::vector<std::string> left_out;
};

Seen seen_of(const PredictOptions& options, const Store* store, predict::Targets& targets) {
  Seen seen;
  if (store != nullptr) {
    seen.runs = predict::stored_observations(*store, targets.known(), seen.left_out);
  }
  for (const std::string& file : options.observed) {
    for (predict::Observation& one : predict::read_observations(file, targets)) {
      seen.runs.push_back(std::move(one));
    }
  }
  return seen;
}

// The default store counts where there is one.
std::optional<Store> store_of(const PredictOptions& options) {
  const bool is_default = options.store == PredictOptions{}.store;
  if (options.no_store || (is_default && !std::filesystem::exists(options.store))) return {};
  return Store::open_existing(options.store);
}

predict::Work work_of(const PredictOptions& options, const std::string& model) {
  predict::Work work;
  work.inference = options.inference;
  work.step.model = onnx::named_config(model);
  if (options.classes) work.step.model.classes = *options.classes;
  set_image(work.step.model, options.image);
  check_config(work.step.model);
  work.step.optimizer = optimizer_attributes(options.optimizer);
  return work;
}

std::vector<std::int64_t> batches_of(const PredictOptions& options) {
  std::vector<std::int64_t> batches;
  for (const std::string& text : options.batches) {
    batches.push_back(number_in<std::int32_t>(text).value_or(0));
    if (batches.back() < 1) bad_input("--batch '{}': expected numbers of at least 1", text);
  }
  if (batches.empty()) batches.push_back(kUsualBatch);
  return batches;
}

std::vector<Precision> precisions_of(const PredictOptions& options) {
  std::vector<Precision> precisions;
  for (const std::string& name : options.precisions) {
    precisions.push_back(static_cast<Precision>(choice_of("--precision", name, kPrecisionNames)));
  }
  if (precisions.empty()) precisions.push_back(Precision::fp32);
  return precisions;
}

void check_numbers(const PredictOptions& options) {
  if (options.classes && *options.classes < 2) {
    bad_input("--classes {}: must be at least 2", *options.classes);
  }
  if (options.samples && *options.samples < 1) {
    bad_input("--samples {}: must be at least 1", *options.samples);
  }
  if (options.epochs && *options.epochs < 1) {
    bad_input("--epochs {}: must be at least 1", *options.epochs);
  }
  if (options.epochs && !options.samples) {
    bad_input("--epochs needs --samples, the samples of an epoch");
  }
  if (!options.draw.empty() && !options.samples) {
    bad_input("--draw draws whole trainings: it needs --samples, the samples of an epoch");
  }
  if (!options.draw.empty() && options.models.size() != 1) {
    bad_input("--draw draws one network, {} are asked for", options.models.size());
  }
  if (options.top < 0) bad_input("--top {}: must not be negative", options.top);
}

int run_check(const PredictOptions& options, const Seen& seen) {
  const CheckView view{predict::hold_back(seen.runs), seen.left_out};
  if (view.held.empty()) {
    bad_input(
        "predict --check: {} runs are known, too few to leave some out; it needs several "
        "networks, batches or devices with the same backend",
        seen.runs.size());
  }
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, check_csv(view));
  print(options.output.json ? check_json(view) : check_text(view));
  return 0;
}

int run_learn(const PredictOptions& options, const Seen& seen) {
  std::vector<std::string> sources = options.observed;
  if (sources.empty()) sources.push_back(options.store);
  const auto learnt = predict::learn_all(seen.runs, joined(sources, ", "));
  if (learnt.empty()) bad_input("predict --learn: no backend has runs of two networks");
  write_file_atomically(options.learn, predict::efficiencies_toml(learnt));
  return 0;
}

// Calls `make` for all combinations; why nothing can be said of one is kept in `refused`.
template <typename Make>
void each_question(const PredictOptions& options, const std::vector<predict::Target>& on,
                   std::vector<std::string>& refused, const Make& make) {
  const std::vector<Precision> precisions = precisions_of(options);
  const std::vector<std::int64_t> batches = batches_of(options);
  for (const std::string& model : options.models) {
    predict::Question question;
    question.work = work_of(options, model);
    question.backend = options.backend;
    for (const Precision precision : precisions) {
      question.work.step.precision = precision;
      for (const std::int64_t batch : batches) {
        question.work.step.batch = batch;
        for (const predict::Target& target : on) {
          question.target = target;
          try {
            make(question);
          } catch (const Error& error) {
            if (error.kind() == ErrorKind::failure) throw;
            refused.emplace_back(error.what());
          }
        }
      }
    }
  }
}

PredictionView predictions(const PredictOptions& options, const std::vector<predict::Target>& on,
                           predict::Predictor& predictor, const predict::Prices& prices) {
  PredictionView view;
  view.samples = options.samples.value_or(0);
  view.top = options.top;
  if (!prices.empty()) view.currency = prices.currency();
  each_question(options, on, view.refused, [&](const predict::Question& question) {
    view.rows.push_back(predictor.predict(question));
    view.rows.back().per_hour = prices.per_hour(question.target.name);
  });
  if (options.samples && !view.rows.empty()) {
    view.trainings = predict::trainings_of(view.rows, *options.samples, options.epochs.value_or(1));
  }
  return view;
}

int run_ranks(const PredictOptions& options, const std::vector<predict::Target>& on,
              predict::Predictor& predictor, const predict::Network& network) {
  RankView view;
  const std::vector<int> counts = rank_counts(options.ranks);
  for (const predict::Scaling scaling : scalings_of(options.ranks)) {
    for (const int ranks : counts) {
      each_question(options, on, view.refused, [&](predict::Question question) {
        question.largest_batch = false;
        view.rows.push_back(predict::predict_ranks(predictor, question, network, ranks, scaling));
      });
    }
  }
  if (view.rows.empty()) bad_input("{}", view.refused.front());
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, ranks_csv(view));
  print(options.output.json ? ranks_json(view) : ranks_text(view));
  return 0;
}

void draw(const PredictOptions& options, const PredictionView& view) {
  if (options.draw.empty()) return;
  const report::Figure figure = report::frontier_figure(view.rows, view.trainings, view.currency);
  if (figure.empty()) {
    bad_input("--draw {}: no prediction has both a time and {} to draw", options.draw,
              options.prices.empty() ? "an energy" : "a cost");
  }
  report::save_picture(figure, options.draw);
}

int run_predict(const PredictOptions& options) {
  check_numbers(options);
  check_writable(options.output.csv);
  check_writable(options.learn);
  report::check_picture(options.draw);
  const std::optional<Store> store = store_of(options);
  predict::Targets targets(known_hardware(), store ? &*store : nullptr);
  for (const std::string& file : options.hardware) targets.add_file(file);
  if (options.check)
    return run_check(options, seen_of(options, store ? &*store : nullptr, targets));
  if (!options.learn.empty()) {
    return run_learn(options, seen_of(options, store ? &*store : nullptr, targets));
  }
  if (options.models.empty()) bad_input("predict: needs a MODEL; 'ridgeline models' lists them");
  if (options.targets.empty()) bad_input("predict: needs --on, such as --on T4,A100");
  std::vector<predict::Target> on;
  for (const std::string& name : options.targets) {
    for (predict::Target& target : targets.find(name)) on.push_back(std::move(target));
  }
  std::optional<predict::Network> network;
  if (!rank_counts(options.ranks).empty()) {
    network = network_of(options.ranks, targets.known(), store ? &*store : nullptr);
  }
  predict::Prices prices;
  if (!options.prices.empty()) {
    prices = predict::Prices(read_text(options.prices), options.prices);
  }
  Seen seen = seen_of(options, store ? &*store : nullptr, targets);
  const predict::Knowledge knowledge(
      options.no_shipped ? std::vector<predict::Shipped>() : predict::shipped_efficiencies(),
      std::move(seen.runs));
  predict::Predictor predictor(knowledge);
  if (network) return run_ranks(options, on, predictor, *network);
  const PredictionView view = predictions(options, on, predictor, prices);
  if (view.rows.empty()) bad_input("{}", view.refused.front());
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, prediction_csv(view));
  draw(options, view);
  print(options.output.json ? prediction_json(view) : prediction_text(view));
  return 0;
}

}  // namespace

void add_predict(Parser& program, Action& action) {
  auto options = std::make_shared<PredictOptions>();
  Parser* command = program.add_subcommand(
      "predict", "Estimate time, memory, energy and cost of a step on other hardware");
  command->heading(kModelHeading);
  command->add_option("MODEL", options->models, "Models, or .onnx files");
  command->add_option("--image CxHxW", options->image, "Image size [default: the model's]");
  command->add_option("--classes N", options->classes, "Number of classes [default: the model's]");
  command->heading("Hardware");
  command
      ->add_option("--on NAME", options->targets,
                   "Devices, such as T4,A100 or 'EPYC 7763'; a machine of the store; a .toml file "
                   "of the form of hardware/gpus.toml")
      ->delimiter(',');
  command->add_option("--hardware FILE", options->hardware,
                      "More devices that --on and --observed may name; may be repeated");
  command->add_option("--prices FILE", options->prices,
                      "Prices per hour: [[price]] with name and per_hour; currency");
  command->heading(kTrainingHeading);
  command
      ->add_option("--batch LIST", options->batches,
                   "Samples per step; several with commas [default: 64]")
      ->delimiter(',');
  command
      ->add_option("--precision LIST", options->precisions,
                   "fp32, tf32, bf16 or fp16; several with commas [default: fp32]")
      ->delimiter(',')
      ->values({"fp32", "tf32", "bf16", "fp16"});
  command->add_flag("--inference", options->inference, "Forward pass alone, batch norms folded");
  add_optimizer_state_options(*command, options->optimizer);
  command->add_option("--samples N", options->samples,
                      "Samples of an epoch, for its time and cost");
  command->add_option("--epochs N", options->epochs,
                      "Epochs of a training, for its time, energy and cost [default: 1]");
  command->add_option("--backend NAME", options->backend,
                      "Backend that computes the steps [default: native on CPUs, auto on GPUs]");
  add_rank_options(*command, options->ranks);
  command->heading("Basis of the prediction");
  command->add_option("--store FILE", options->store,
                      "Learn from the runs of this store [default: ridgeline.db where it is]");
  command->add_flag("--no-store", options->no_store, "Do not use a store");
  command->add_option(
      "--observed FILE", options->observed,
      "Learn also from iterations in a CSV file (docs/predict.md); may be repeated");
  command->add_flag("--no-shipped", options->no_shipped,
                    "Do not use the efficiencies that come with the program");
  command->add_flag("--check", options->check,
                    "Measure the error: leave batches, networks and devices out in turn");
  command->add_option("--learn FILE", options->learn, "Write the efficiencies that the runs show");
  command->heading(kOutputHeading);
  add_output_options(*command, options->output,
                     "Write one row per prediction, or per held-back run");
  command->add_option(
      "--draw FILE", options->draw,
      "Draw time against cost (without prices: energy) of whole trainings: SVG, PNG "
      "or PDF");
  command->add_option("--top N", options->top, "Show the N ops that take the most time");
  add_table_options(*command, prediction_columns());
  command->notes(
      "The exit code is 2 if nothing can be predicted: the hardware is unknown or lacks the "
      "precision, or no run of the backend is known.");
  command->examples({"ridgeline predict resnet50 --on T4,A100 --batch 64 --precision fp16",
                     "ridgeline predict resnet18 mobilenet_v2 --on H100 --batch 32,128 --precision "
                     "tf32,bf16",
                     "ridgeline predict resnet50 --on T4,L4 --prices prices.toml --samples 1281167",
                     "ridgeline predict resnet50 --on T4,L4,H100 --batch 32,128 --samples 1281167 "
                     "--epochs 90 --prices prices.toml --draw frontier.svg",
                     "ridgeline predict resnet50 --on H100 --ranks 8,64 --network 'InfiniBand NDR' "
                     "--ranks-per-node 8 --node-network 'NVLink 4'",
                     "ridgeline predict resnet50 --on mine.toml --inference --batch 1",
                     "ridgeline predict --check --store all.db"});
  command->callback([options, &action] { action = [options] { return run_predict(*options); }; });
}

}  // namespace ridgeline::cli
