// The calls of the laboratory: a request is read, carried out, and told as a document.

#include <cmath>

#include "analysis/compare/stored.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/text.h"
#include "capi/guard.h"
#include "capi/request.h"
#include "devices/device.h"
#include "documents/bench.h"
#include "documents/compare.h"
#include "documents/describe.h"
#include "documents/exhibits.h"
#include "documents/models.h"
#include "documents/profile.h"
#include "documents/report.h"
#include "documents/roofline.h"
#include "documents/study.h"
#include "documents/train.h"
#include "inspect/network_description.h"
#include "lab/roofline.h"
#include "measure/profile/trace.h"
#include "onnx/network.h"
#include "report/exhibits/figure_kinds.h"
#include "report/make_document.h"
#include "report/pictures.h"
#include "report/plot/draw.h"

struct rl_network {
  std::shared_ptr<const ridgeline::NetworkSource> source;
};

namespace ridgeline::capi {
namespace {

// Hands everything on to the functions of the caller.
class Listener final : public TrainListener {
 public:
  explicit Listener(const rl_listener* listener) : to_(listener ? *listener : rl_listener{}) {}

  void note(const std::string& line) override {
    if (to_.note != nullptr) to_.note(to_.context, line.c_str());
  }
  void progress(std::int64_t done, std::int64_t total, const char* what) override {
    if (to_.progress != nullptr) to_.progress(to_.context, done, total, what);
  }
  void epoch(const EpochResult& result) override {
    if (to_.epoch != nullptr) to_.epoch(to_.context, json_text(epoch_json(result)).c_str());
  }
  [[nodiscard]] bool go_on() override {
    if (to_.go_on != nullptr && to_.go_on(to_.context) == 0) stopped_ = true;
    return !stopped_;
  }
  // Once it was told to stop it stays so.
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  rl_listener to_;
  bool stopped_ = false;
};

// Tells items as they begin and end.
class StudyTold final : public study::StudyObserver {
 public:
  StudyTold(Listener& listener, std::int64_t items) : listener_(listener), items_(items) {}
  void begun(const StudyItemRecord& item) override {
    listener_.progress(done_, items_, item.key.c_str());
  }
  void ended(const StudyItemRecord& item) override {
    listener_.progress(++done_, items_, item.key.c_str());
    std::string line = fmt::format("{}: {}", item.key, name_of(item.status));
    if (item.seconds) line += ", " + duration_text(*item.seconds);
    if (!item.reason.empty()) line += ": " + item.reason;
    listener_.note(line);
  }
  [[nodiscard]] bool go_on() override { return listener_.go_on(); }

 private:
  Listener& listener_;
  std::int64_t items_, done_ = 0;
};

// A document with what only the caller of a function needs to know.
std::string with_ending(const std::string& document, bool interrupted,
                        const std::vector<std::string>& troubles) {
  auto json = nlohmann::ordered_json::parse(document);
  json["interrupted"] = interrupted;
  json["troubles"] = nlohmann::ordered_json::array();
  for (const std::string& trouble : troubles) {
    if (!trouble.empty()) json["troubles"].push_back(trouble);
  }
  return json_document(json);
}

// The first graphics processor that CUDA can use here, else the CPU.
std::string device_json() {
  const std::string reason = cuda_unavailable();
  if (reason.empty()) return json_text(nlohmann::ordered_json{{"device", "cuda:0"}});
  return json_text(nlohmann::ordered_json{{"device", "cpu"}, {"reason", reason}});
}

std::string bench(const char* text, const rl_listener* functions) {
  const BenchCall call = bench_request(text);
  Listener listener(functions);
  const BenchReport report = run_bench(call.request, listener);
  return with_ending(bench_json(report, call.per_step), listener.stopped(),
                     {report.store_trouble, report.board_trouble});
}

std::string profile(const char* text, const rl_listener* functions) {
  const ProfileCall call = profile_request(text);
  ProfileView view;
  view.by = static_cast<TableBy>(choice_of("by", call.by, kTableNames));
  view.top = call.top;
  if (call.top && *call.top < 1) bad_input("top {}: must be at least 1", *call.top);
  Listener listener(functions);
  const ProfileReport report = run_profile(call.request, listener);
  if (!call.trace.empty()) {
    write_trace(report.collected.profile, call.trace);
    view.trace = call.trace;
  }
  return with_ending(profile_json(report, view), listener.stopped(), {report.store_trouble});
}

std::string compare(const char* text) {
  RequestReader reader(text);
  std::string path = "ridgeline.db", a, b;
  VerdictOptions verdict;
  bool force = false;
  reader.read("store", path);
  reader.read("a", a);
  reader.read("b", b);
  reader.read("margin", verdict.margin);
  reader.read("alpha", verdict.alpha);
  reader.read("force", force);
  reader.finish();
  check_verdict_options(verdict);
  const Store store = Store::open_existing(path);
  return comparison_json(
      compare_runs(store, find_run(store, a), find_run(store, b), verdict, force), verdict);
}

std::string roofline(const char* text, const rl_listener* functions) {
  RequestReader reader(text);
  RooflineRequest request;
  std::string by = "network";
  RooflineView view;
  reader.read("store", request.store);
  reader.read("runs", request.runs);
  reader.read("by", by);
  reader.read("top", view.top);
  reader.finish();
  static constexpr std::array<std::string_view, 4> kNames = {"network", "layer", "op", "step"};
  static constexpr std::array kGroupings = {Grouping::network, Grouping::layer, Grouping::op,
                                            Grouping::step};
  view.by = kGroupings[choice_of("by", by, kNames)];
  if (view.top && *view.top < 1) bad_input("top {}: must be at least 1", *view.top);
  Listener listener(functions);
  return roofline_json(run_roofline(request, listener), view);
}

std::string study_call(const char* text, const rl_listener* functions) {
  bool dry_run = false;
  const study::StudyRequest request = study_request(text, dry_run);
  if (request.program.empty() && !dry_run) {
    bad_input("a study runs commands: 'program' must be the path of the program ridgeline");
  }
  study::PreparedStudy prepared = prepare_study(request);
  StudySummary summary;
  summary.study = &prepared.study;
  summary.scale = prepared.choice.scale;
  summary.store = request.store.path;
  if (dry_run) {
    for (const study::PlannedItem& item : prepared.plan) summary.items.push_back(item.record);
    return study_json(summary);
  }
  const Clock::time_point start = Clock::now();
  study::StudyRun run = begin_study(request, prepared);
  summary.uuid = run.record().uuid;
  summary.resumed = run.resumed();
  Listener listener(functions);
  StudyTold told(listener, std::ssize(run.items()));
  summary.interrupted = !run.run(told);
  summary.items = run.items();
  summary.seconds = seconds_since(start);
  return study_json(summary);
}

std::string write_report_call(const char* text, const rl_listener* functions) {
  RequestReader reader(text);
  std::string path = "ridgeline.db", out = "report";
  report::DocumentOptions options;
  std::vector<std::string> formats = {"html", "markdown", "latex", "csv", "svg"};
  reader.read("store", path);
  reader.read("out", out);
  reader.read("title", options.title);
  reader.read("studies", options.studies);
  reader.read("formats", formats);
  reader.finish();
  Listener listener(functions);
  const report::ReportFormats wanted = report::formats_of(formats);
  const report::Document document = report::stored_document(path, options);
  report::ReportFolder folder(out);
  const report::WrittenReport written = report::write_report(
      document, folder, wanted, [&](std::size_t done, std::size_t total, const std::string& what) {
        listener.progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(total),
                          what.c_str());
        return listener.go_on();
      });
  if (listener.stopped()) fail("interrupted; {} is unchanged", out);
  folder.commit();
  return written_json(written, out);
}

std::string exhibits(const char* text) {
  RequestReader reader(text);
  std::string path = "ridgeline.db";
  ExhibitsRequest request;
  reader.read("store", path);
  reader.read("names", request.names);
  reader.read("runs", request.runs);
  reader.finish();
  request.store = path;
  return exhibits_json(request);
}

// The boxes and arrows of a network.
std::string network_svg(const char* text) {
  const Description description = describe_step(describe_request(text));
  const report::Figure figure =
      report::network_figure(describe_network(description.model), description.model.name);
  const std::vector<const report::Figure*> all = {&figure};
  return svg_file(figure, draw(figure, report::plot::Colours(all)));
}

Dataset dataset_of(const rl_images& images, const rl_shape& shape, const char* name) {
  if (images.count < 1) bad_input("{}: there are no images", name);
  if (shape.channels < 1 || shape.height < 1 || shape.width < 1 || shape.classes < 2) {
    bad_input("{}: images of {}x{}x{} and {} classes", name, shape.channels, shape.height,
              shape.width, shape.classes);
  }
  Dataset data;
  data.name = "arrays";
  data.source = "arrays of the caller";
  data.channels = shape.channels;
  data.height = shape.height;
  data.width = shape.width;
  data.classes = static_cast<std::int32_t>(shape.classes);
  const auto count = static_cast<std::size_t>(images.count);
  const std::uint8_t* pixels = given(images.pixels, "pixels");
  const std::int32_t* labels = given(images.labels, "labels");
  data.pixels.assign(pixels, pixels + count * data.sample_bytes());
  data.labels.assign(labels, labels + count);
  for (const std::int32_t label : data.labels) {
    if (label < 0 || label >= data.classes) {
      bad_input("{}: label {} must be between 0 and {}", name, label, data.classes - 1);
    }
  }
  return data;
}

std::string train(const char* text, const rl_images* train_images, const rl_images* test_images,
                  const rl_shape* shape, const rl_listener* functions) {
  TrainRequest request = train_request(text);
  if (train_images != nullptr) {
    auto split = std::make_shared<Split>();
    split->train = dataset_of(*train_images, *given(shape, "shape"), "training data");
    if (test_images != nullptr) split->test = dataset_of(*test_images, *shape, "test data");
    request.given = std::move(split);
  }
  Listener listener(functions);
  const TrainReport report = run_train(request, listener);
  if (!report.error.empty()) throw Error(report.error_kind, report.error);
  return with_ending(train_json(report), report.result.interrupted, {report.store_trouble});
}

}  // namespace
}  // namespace ridgeline::capi

using namespace ridgeline;
using namespace ridgeline::capi;

int rl_models(char** result) { return giving_text(result, models_json); }

int rl_device(char** result) { return giving_text(result, device_json); }

int rl_describe(const char* request, char** result) {
  return giving_text(
      result, [&] { return description_json(describe_step(describe_request(request)), true); });
}

int rl_plan(const char* request, char** text) {
  return giving_text(text, [&] { return plan_step(describe_request(request)).text(false); });
}

int rl_network_figure(const char* request, char** svg) {
  return giving_text(svg, [&] { return network_svg(request); });
}

int rl_bench(const char* request, const rl_listener* listener, char** result) {
  return giving_text(result, [&] { return bench(request, listener); });
}

int rl_profile(const char* request, const rl_listener* listener, char** result) {
  return giving_text(result, [&] { return profile(request, listener); });
}

int rl_compare(const char* request, char** result) {
  return giving_text(result, [&] { return compare(request); });
}

int rl_roofline(const char* request, const rl_listener* listener, char** result) {
  return giving_text(result, [&] { return roofline(request, listener); });
}

int rl_studies(char** result) { return giving_text(result, study_list_json); }

int rl_study(const char* request, const rl_listener* listener, char** result) {
  return giving_text(result, [&] { return study_call(request, listener); });
}

int rl_report(const char* request, const rl_listener* listener, char** result) {
  return giving_text(result, [&] { return write_report_call(request, listener); });
}

int rl_exhibits(const char* request, char** result) {
  return giving_text(result, [&] { return exhibits(request); });
}

int rl_picture(const char* svg, const char* path) {
  return guarded([&] { report::save_picture(given(svg, "svg"), given(path, "path")); });
}

int rl_network_open(const char* name, const void* bytes, size_t size, rl_network** network) {
  return guarded([&] {
    *given(network, "network") = nullptr;
    const auto* first = static_cast<const std::byte*>(given(bytes, "bytes"));
    *network = new rl_network{onnx::hold_network(given(name, "name"), {first, size})};
  });
}

const char* rl_network_model(const rl_network* network) {
  return network == nullptr ? "" : network->source->path().c_str();
}

void rl_network_close(rl_network* network) { delete network; }

int rl_train(const char* request, const rl_images* train_images, const rl_images* test_images,
             const rl_shape* shape, const rl_listener* listener, char** result) {
  return giving_text(result,
                     [&] { return train(request, train_images, test_images, shape, listener); });
}

int rl_epoch_order(uint64_t seed, int64_t epoch, int32_t* order, int64_t count) {
  return guarded([&] {
    if (count < 0 || epoch < 0) bad_input("an order of {} samples in epoch {}", count, epoch);
    shuffled_order({given(order, "order"), static_cast<std::size_t>(count)}, seed,
                   static_cast<std::uint64_t>(epoch));
  });
}
