#include "support/demo_document.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace ridgeline::testing {
namespace {

using namespace ridgeline::report;

Figure figure_of(const std::string& id, const std::string& title, const std::string& caption,
                 FigureKind kind = FigureKind::xy) {
  Figure figure;
  figure.id = id;
  figure.title = title;
  figure.caption = caption;
  figure.kind = kind;
  return figure;
}

Table demo_table() {
  Table table{.id = "backends-throughput",
              .title = "Throughput by model and executor",
              .caption = "Training at batch 128 in fp32; medians with 95% intervals.",
              .columns = {{.title = "model", .meaning = "Name of the network"},
                          {.title = "executor"},
                          {.title = "throughput", .unit = "img/s", .number = true},
                          {.title = "rate", .unit = "GFLOP/s", .number = true},
                          {.title = "accuracy", .unit = "%", .number = true}},
              .rows = {},
              .notes = {}};
  const std::size_t synthetic =
      note_index(table, "Synthetic data took the place of tiny-imagenet.");
  Cell marked = interval(1107.3, 1098.2, 1115.4, {3, 4});
  marked.notes.push_back(synthetic);
  table.rows.push_back({words("resnet18"), words("auto on cuda:0"), marked, number(12061.0, {3}),
                        missing(table, "No evaluation was asked for.")});
  table.rows.push_back({words("resnet18"), words("onednn"), interval(41.7, 40.9, 42.6, {5}),
                        number(454.0, {5}), number(61.25, {5})});
  table.rows.push_back(
      {words("mobilenet_v2"), words("native"), number(0.03151, {6}), Cell{}, number(0.5, {6})});
  return table;
}

Table wide_table() {
  Table table{.id = "environments",
              .title = "Environments side by side",
              .caption = "As found when the runs began.",
              .columns = {{.title = ""}, {.title = "two cores"}, {.title = "GPU host"}},
              .rows = {},
              .notes = {}};
  const std::array<std::array<const char*, 3>, 5> rows = {
      {{"processor", "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz, 2 of 64 cores, AVX-512",
        "Intel(R) Xeon(R) Platinum 8480C, 16 cores, AVX-512, AMX"},
       {"GPU", "n/a", "NVIDIA H200, 132 multiprocessors, 139.8 GiB, driver 570.86.15, ECC on"},
       {"temperature", "n/a", "41–68 °C"},
       {"launch latency", "n/a", "2.1 µs"},
       {"libraries", "oneDNN 2.6.3", "oneDNN 2.6.3, cuDNN 9.7, CUDA 12.8"}}};
  for (const auto& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const char* text : row) cells.push_back(words(text));
  }
  return table;
}

Figure roofline() {
  Figure figure = figure_of("roofline-networks", "Networks under the roofs of two machines",
                            "Each point is one training step.", FigureKind::xy);
  figure.x = {.title = "arithmetic intensity", .unit = "FLOP/B", .logarithmic = true};
  figure.y = {.title = "performance", .unit = "GFLOP/s", .logarithmic = true};
  const auto roofs = [&](const std::string& machine, double bandwidth, double compute) {
    const double ridge = compute / bandwidth;
    figure.series.push_back(
        {.name = machine + ": memory",
         .style = SeriesStyle::roof,
         .points = {{.x = 0.1, .y = 0.1 * bandwidth}, {.x = ridge, .y = compute}},
         .group = machine});
    figure.series.push_back({.name = machine + ": fp32",
                             .style = SeriesStyle::roof,
                             .points = {{.x = ridge, .y = compute}, {.x = 1000.0, .y = compute}},
                             .group = machine});
  };
  roofs("two cores", 21.3, 148.0);
  roofs("H200", 4100.0, 51200.0);
  figure.series.push_back({.name = "two cores, onednn",
                           .style = SeriesStyle::points,
                           .points = {{.x = 28.0, .y = 118.0, .label = "resnet18"},
                                      {.x = 31.0, .y = 109.0, .label = "resnet50"},
                                      {.x = 8.1, .y = 44.0, .label = "mobilenet_v2"},
                                      {.x = 13.5, .y = 81.0, .label = "squeezenet1_1"}},
                           .group = "two cores"});
  figure.series.push_back({.name = "H200, auto",
                           .style = SeriesStyle::points,
                           .points = {{.x = 28.0, .y = 31200.0, .label = "resnet18"},
                                      {.x = 31.0, .y = 33800.0, .label = "resnet50"},
                                      {.x = 8.1, .y = 14800.0, .label = "mobilenet_v2"},
                                      {.x = 13.5, .y = 21900.0, .label = "squeezenet1_1"}},
                           .group = "H200"});
  figure.series.push_back({.name = "H200, resnet18 by batch",
                           .style = SeriesStyle::line_points,
                           .points = {{.x = 12.0, .y = 4100.0, .label = "8"},
                                      {.x = 19.0, .y = 11300.0, .label = "32"},
                                      {.x = 25.0, .y = 24600.0, .label = "64"}},
                           .group = "H200"});
  figure.notes.push_back("Roofs were measured on each machine, not taken from data sheets.");
  figure.runs = {3, 4, 5};
  return figure;
}

Figure curves() {
  Figure figure = figure_of("accuracy-epochs", "Test accuracy over epochs",
                            "Bands are 95% intervals of three seeds.");
  figure.x = {.title = "epoch"};
  figure.y = {.title = "test accuracy", .unit = "%"};
  const std::array<const char*, 3> names = {"native", "onednn", "torch-cpu"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    Series series{.name = names[i], .points = {}};
    for (int epoch = 1; epoch <= 10; ++epoch) {
      const double value = 98.5 - 12.0 * std::exp(-0.5 * epoch) - 0.4 * static_cast<double>(i);
      const double half = 0.8 / epoch + 0.1;
      series.points.push_back(
          {.x = static_cast<double>(epoch), .y = value, .low = value - half, .high = value + half});
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

Figure samples() {
  Figure figure = figure_of("samples", "Every measured iteration", "Wall time of 400 iterations.");
  figure.x = {.title = "iteration"};
  figure.y = {.title = "time", .unit = "ms"};
  Series native{.name = "native", .style = SeriesStyle::points, .points = {}};
  Series clock{.name = "clock-limited", .style = SeriesStyle::step, .points = {}};
  for (int i = 0; i < 400; ++i) {
    const double x = i;
    native.points.push_back(
        {.x = x, .y = 12.0 + std::sin(x * 12.9898) * 0.4 + (i % 50 == 0 ? 3.0 : 0.0)});
    if (i % 40 == 0) clock.points.push_back({.x = x, .y = 14.0 + (i / 40) % 3});
  }
  figure.series = {native, clock};
  return figure;
}

Figure grouped_bars() {
  Figure figure = figure_of("throughput-bars", "Training throughput at batch 128",
                            "Medians; whiskers are 95% intervals.", FigureKind::bars);
  figure.x = {.title = "network",
              .categories = {"resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1"}};
  figure.y = {.title = "throughput", .unit = "img/s", .logarithmic = true};
  figure.series = {{.name = "native",
                    .points = {{.x = 0, .y = 38.0, .low = 35.0, .high = 40.0},
                               {.x = 1, .y = 11.2, .low = 10.9, .high = 11.4},
                               {.x = 2, .y = 61.0, .low = 55.0, .high = 66.0},
                               {.x = 3, .y = 120.0, .low = 110.0, .high = 127.0}}},
                   {.name = "onednn",
                    .points = {{.x = 0, .y = 41.7, .low = 40.9, .high = 42.6},
                               {.x = 1, .y = 12.6, .low = 12.5, .high = 12.9},
                               {.x = 3, .y = 142.0, .low = 139.0, .high = 147.0}}},
                   {.name = "auto on cuda:0",
                    .points = {{.x = 0, .y = 11073.0, .low = 10982.0, .high = 11154.0},
                               {.x = 1, .y = 3420.0, .low = 3390.0, .high = 3441.0},
                               {.x = 2, .y = 7210.0, .low = 7100.0, .high = 7300.0},
                               {.x = 3, .y = 20100.0, .low = 19800.0, .high = 20500.0}}}};
  return figure;
}

Figure stacked_bars() {
  Figure figure = figure_of("breakdown", "Where a step's time goes",
                            "Parts of a watched iteration; they add up to it.", FigureKind::bars);
  figure.x = {.title = "run",
              .categories = {"resnet18, auto on cuda:0 in bf16", "resnet18, onednn",
                             "densenet121 (transfer learning), torch-cuda"}};
  figure.y = {.title = "share of the step", .unit = "%", .high = 100.0};
  figure.stacked = true;
  figure.horizontal = true;
  const std::array<const char*, 6> parts = {"kernel", "copy", "runtime", "data", "CPU", "idle"};
  const std::array<std::array<double, 3>, 6> shares = {
      {{71, 92, 55}, {4, 0, 9}, {6, 0, 3}, {12, 5, 26}, {3, 3, 2}, {4, 0, 5}}};
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Series series{.name = parts[part], .points = {}};
    for (std::size_t run = 0; run < 3; ++run) {
      series.points.push_back({.x = static_cast<double>(run), .y = shares[part][run]});
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

Figure memory_area() {
  Figure figure = figure_of("memory-timeline", "What lives in memory, step by step",
                            "Planned bytes by owner.", FigureKind::area);
  figure.x = {.title = "step of the plan"};
  figure.y = {.title = "memory", .unit = "MiB"};
  const std::array<const char*, 4> owners = {"parameter", "gradient", "activation", "workspace"};
  for (std::size_t owner = 0; owner < owners.size(); ++owner) {
    Series series{.name = owners[owner], .style = SeriesStyle::step, .points = {}};
    for (int step = 0; step <= 60; ++step) {
      const double rise = step < 30 ? step : 60 - step;
      const double bytes = owner == 0   ? 44.6
                           : owner == 1 ? std::max(0.0, 44.6 * (step - 30) / 30.0)
                           : owner == 2 ? 9.0 * rise
                                        : 20.0 + 15.0 * ((step * 7) % 5);
      series.points.push_back({.x = static_cast<double>(step), .y = bytes});
    }
    figure.series.push_back(std::move(series));
  }
  return figure;
}

Figure step_timeline() {
  Figure figure = figure_of("step-timeline", "One iteration, span by span",
                            "The third watched iteration.", FigureKind::spans);
  figure.x = {.title = "time", .unit = "ms"};
  const std::array<const char*, 4> phases = {"forward", "backward", "optimizer", "input"};
  double at = 0.0;
  for (int i = 0; i < 36; ++i) {
    const double length = 0.05 + 0.11 * ((i * 5) % 7);
    const std::string phase = phases[i < 2 ? 3 : i < 14 ? 0 : i < 33 ? 1 : 2];
    figure.spans.push_back({.track = "host",
                            .name = "launch",
                            .group = "runtime",
                            .begin = at * 0.6,
                            .end = at * 0.6 + 0.05});
    figure.spans.push_back(
        {.track = "cuda:0 stream 7",
         .name = fmt::format("layer{}.{}.conv{}", i / 8 + 1, i / 4 % 2, i % 4 / 2 + 1),
         .group = phase,
         .begin = at + 0.2,
         .end = at + 0.2 + length});
    at += length + 0.02;
  }
  figure.spans.push_back({.track = "copies",
                          .name = "images to the device",
                          .group = "copy",
                          .begin = 0.1,
                          .end = 1.4});
  return figure;
}

Figure small_network() {
  Figure figure = figure_of("network-mnist-cnn", "mnist_cnn",
                            "Boxes are ops; bars are shares of the FLOPs.", FigureKind::diagram);
  const std::array<std::array<const char*, 4>, 11> nodes = {
      {{"input", "input", "1x28x28", "input"},
       {"conv1", "conv2d 3x3", "8x26x26 · 97 kFLOP", "conv2d"},
       {"relu1", "relu", "8x26x26", "relu"},
       {"pool1", "maxpool2d 2x2", "8x13x13", "pool"},
       {"conv2", "conv2d 3x3", "16x11x11 · 279 kFLOP", "conv2d"},
       {"relu2", "relu", "16x11x11", "relu"},
       {"pool2", "maxpool2d 2x2", "16x5x5", "pool"},
       {"flatten", "flatten", "400", "shape"},
       {"fc1", "dense", "128 · 102 kFLOP", "dense"},
       {"relu3", "relu", "128", "relu"},
       {"fc2", "dense", "10 · 2.6 kFLOP", "dense"}}};
  const std::array<double, 11> weights = {0, 0.2, 0.01, 0.01, 0.55, 0.01, 0.01, 0, 0.2, 0, 0.01};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    figure.nodes.push_back({.id = nodes[i][0],
                            .title = nodes[i][1],
                            .detail = nodes[i][2],
                            .group = nodes[i][3],
                            .weight = weights[i]});
    if (i > 0) figure.edges.push_back({nodes[i - 1][0], nodes[i][0]});
  }
  return figure;
}

}  // namespace

Figure residual_network(const std::string& id, int blocks) {
  Figure figure = figure_of(id, fmt::format("A residual network of {} blocks", blocks),
                            "Boxes are ops; bars are shares of the FLOPs.", FigureKind::diagram);
  std::string last;
  const auto add = [&](const std::string& name, const std::string& title, const std::string& detail,
                       const std::string& group, double weight) {
    figure.nodes.push_back(
        {.id = name, .title = title, .detail = detail, .group = group, .weight = weight});
    if (!last.empty()) figure.edges.push_back({last, name});
    last = name;
  };
  const double share = 0.9 / (2.0 * blocks + 1.0);
  add("input", "input", "3x224x224", "input", 0.0);
  add("conv1", "conv2d 7x7 /2", "64x112x112 · 0.24 GFLOP", "conv2d", share);
  add("bn1", "batchnorm", "64x112x112", "batchnorm", 0.0);
  add("relu", "relu", "64x112x112", "relu", 0.0);
  add("maxpool", "maxpool2d 3x3 /2", "64x56x56", "pool", 0.0);
  for (int block = 0; block < blocks; ++block) {
    const int stage = 4 * block / blocks;
    const bool smaller = stage > 0 && 4 * (block - 1) / blocks < stage;
    const std::string path = fmt::format("layer{}.{}", stage + 1, block);
    const std::string shape = fmt::format("{}x{}x{}", 64 << stage, 56 >> stage, 56 >> stage);
    const std::string before = last;
    add(path + ".conv1", smaller ? "conv2d 3x3 /2" : "conv2d 3x3", shape + " · 0.23 GFLOP",
        "conv2d", share);
    add(path + ".bn1", "batchnorm", shape, "batchnorm", 0.0);
    add(path + ".relu", "relu", shape, "relu", 0.0);
    add(path + ".conv2", "conv2d 3x3", shape + " · 0.23 GFLOP", "conv2d", share);
    add(path + ".bn2", "batchnorm", shape, "batchnorm", 0.0);
    const std::string main = last;
    std::string shortcut = before;
    if (smaller) {
      last = before;
      add(path + ".downsample.0", "conv2d 1x1 /2", shape, "conv2d", share / 9.0);
      add(path + ".downsample.1", "batchnorm", shape, "batchnorm", 0.0);
      shortcut = last;
      last = main;
    }
    add(path + ".add", "add", shape, "add", 0.0);
    figure.edges.push_back({shortcut, path + ".add"});
    add(path + ".relu2", "relu", shape, "relu", 0.0);
  }
  add("avgpool", "global average", "512x1x1", "pool", 0.0);
  add("fc", "dense", "1000 · 1.0 MFLOP", "dense", 0.01);
  return figure;
}

Document demo_document() {
  Document document{.title = "Ridgeline: what two machines do",
                    .subtitle = "A demonstration with made-up numbers",
                    .generated = "2026-11-15T17:00:00Z",
                    .program = "ridgeline 0.1.0 (demo)",
                    .sections = {}};
  Section summary{.id = "summary", .title = "Summary", .blocks = {}, .sections = {}};
  summary.blocks.emplace_back(Paragraph{{{.text = "resnet18 trains "},
                                         {.text = "26.6 × faster", .runs = {3, 5}, .strong = true},
                                         {.text = " on the GPU (95% interval 25.8–27.3)."}}});
  summary.blocks.emplace_back(Notice{"warning",
                                     "accuracy at chance",
                                     {{.text = "squeezenet1_1 ended at 0.5%, the share that "
                                               "guessing among 200 classes gets.",
                                       .runs = {6}}}});
  summary.blocks.emplace_back(demo_table());
  Section results{.id = "study-environments",
                  .title = "Four CNNs across machines",
                  .blocks = {},
                  .sections = {}};
  results.blocks.emplace_back(Judgement{"GPUs win most on deep networks.",
                                        "confirmed",
                                        {{.text = "The speed-up of resnet50 is 1.3 [1.2–1.4] times "
                                                  "that of resnet18.",
                                          .runs = {3, 4, 5}}}});
  results.blocks.emplace_back(Judgement{"Larger batches come closer to the compute roof.",
                                        "undecided",
                                        {{.text = "The intervals of batch 64 and 128 overlap."}}});
  results.blocks.emplace_back(wide_table());
  Section rooflines{.id = "rooflines", .title = "Rooflines", .blocks = {}, .sections = {}};
  rooflines.blocks.emplace_back(roofline());
  rooflines.blocks.emplace_back(grouped_bars());
  Section curve_section{.id = "curves", .title = "Curves", .blocks = {}, .sections = {}};
  curve_section.blocks.emplace_back(curves());
  curve_section.blocks.emplace_back(samples());
  results.sections = {rooflines, curve_section};
  Section profile{.id = "profile", .title = "Profiles", .blocks = {}, .sections = {}};
  profile.blocks.emplace_back(stacked_bars());
  profile.blocks.emplace_back(memory_area());
  profile.blocks.emplace_back(step_timeline());
  profile.blocks.emplace_back(small_network());
  profile.blocks.emplace_back(residual_network("network-resnet18", 8));
  profile.blocks.emplace_back(residual_network("network-deep", 60));
  Section method{.id = "method", .title = "Method", .blocks = {}, .sections = {}};
  method.blocks.emplace_back(Paragraph{{{.text = "Medians with block-bootstrap intervals."}}});
  method.blocks.emplace_back(
      Listing{"ridgeline study environments --scale small\nridgeline report"});
  document.sections = {summary, results, profile, method};
  return document;
}

const std::string& hostile_name() {
  static const std::string name =
      "</script><img src=x onerror=alert(1)>|*_`~#%&$^{}\\\\'\"@x ![a](b) %s \\n\t<b>é–×°·µ";
  return name;
}

Document hostile_document() {
  const std::string& bad = hostile_name();
  Document document{
      .title = bad, .subtitle = bad, .generated = bad, .program = bad, .sections = {}};
  Section section{.id = "hostile", .title = bad, .blocks = {}, .sections = {}};
  const std::vector<Piece> pieces = {{.text = bad, .runs = {1}}, {.text = bad, .strong = true}};
  section.blocks.emplace_back(Paragraph{pieces});
  section.blocks.emplace_back(Listing{bad + "\n```\n\\end{verbatim}\n" + bad});
  section.blocks.emplace_back(Notice{"error", bad, pieces});
  section.blocks.emplace_back(Judgement{bad, "not confirmed", pieces});
  Table table{.id = "hostile-table",
              .title = bad,
              .caption = bad,
              .columns = {{.title = bad, .unit = bad, .meaning = bad},
                          {.title = "line\nbreak", .unit = "%", .number = true}},
              .rows = {},
              .notes = {}};
  table.rows.push_back({words(bad), missing(table, bad)});
  table.rows.push_back({words("=1+1"), interval(-1.5, -2.25, 0.125)});
  section.blocks.emplace_back(table);
  section.blocks.emplace_back(Table{.id = "empty-table",
                                    .title = "No rows",
                                    .caption = "",
                                    .columns = {{.title = "a"}},
                                    .rows = {},
                                    .notes = {}});

  const auto figure = [&](const std::string& id, FigureKind kind) {
    Figure made = figure_of(id, bad, bad, kind);
    made.x = made.y = {.title = bad, .unit = bad};
    made.notes = {bad};
    return made;
  };
  Figure xy = figure("hostile-xy", FigureKind::xy);
  xy.x.logarithmic = xy.y.logarithmic = true;
  xy.series = {{.name = bad,
                .points = {{.x = 0.0, .y = 1.0, .label = bad},
                           {.x = 1.0, .y = -1.0},
                           {.x = 10.0, .y = 20.0, .low = -1.0, .high = 30.0, .label = bad},
                           {.x = std::nan(""), .y = 5.0}}},
               {.name = bad + " empty", .points = {}},
               {.name = bad, .style = SeriesStyle::roof, .points = {{1.0, 10.0}, {100.0, 10.0}}}};
  section.blocks.emplace_back(xy);
  Figure single = figure("single-point", FigureKind::xy);
  single.series = {{.name = "one", .points = {{.x = 5.0, .y = 5.0}}}};
  section.blocks.emplace_back(single);
  Figure nothing = figure("nothing-positive", FigureKind::xy);
  nothing.y.logarithmic = true;
  nothing.series = {{.name = "zeros", .points = {{.x = 1.0, .y = 0.0}, {.x = 2.0, .y = 0.0}}}};
  section.blocks.emplace_back(nothing);
  for (const bool stacked : {false, true}) {
    for (const bool horizontal : {false, true}) {
      Figure bars =
          figure(fmt::format("hostile-bars-{}{}", int{stacked}, int{horizontal}), FigureKind::bars);
      bars.stacked = stacked;
      bars.horizontal = horizontal;
      bars.x.categories = {bad, bad, "plain"};
      bars.series = {
          {.name = bad,
           .points = {{.x = 0, .y = -3.0, .low = -5.0, .high = -2.0}, {.x = 2, .y = 7.0}}},
          {.name = "second", .points = {{.x = 1, .y = 0.0}, {.x = 7, .y = 4.0}}}};
      section.blocks.emplace_back(bars);
    }
  }
  Figure one_bar = figure("one-bar", FigureKind::bars);
  one_bar.y.logarithmic = true;
  one_bar.x.categories = {"only"};
  one_bar.series = {{.name = "a", .points = {{.x = 0, .y = 2.0}}},
                    {.name = "zero", .points = {{.x = 0, .y = 0.0}}}};
  section.blocks.emplace_back(one_bar);
  Figure area = figure("hostile-area", FigureKind::area);
  area.series = {{.name = bad, .points = {{.x = 1, .y = 1}, {.x = 3, .y = 2}}},
                 {.name = "later", .style = SeriesStyle::step, .points = {{.x = 2, .y = 5}}}};
  section.blocks.emplace_back(area);
  Figure spans = figure("hostile-spans", FigureKind::spans);
  spans.spans = {{.track = bad, .name = bad, .group = bad, .begin = 0.0, .end = 10.0},
                 {.track = bad, .name = "within", .group = "b", .begin = 2.0, .end = 2.0}};
  section.blocks.emplace_back(spans);
  Figure diagram = figure("hostile-diagram", FigureKind::diagram);
  diagram.nodes = {{.id = bad, .title = bad, .detail = bad, .group = bad, .weight = 2.0},
                   {.id = "b", .title = "b", .detail = "", .group = "b", .weight = 0.0}};
  diagram.edges = {{bad, "b"}, {"b", bad}, {"b", "b"}, {"nowhere", "b"}};
  section.blocks.emplace_back(diagram);
  section.blocks.emplace_back(figure("empty-figure", FigureKind::xy));
  document.sections = {section};
  return document;
}

}  // namespace ridgeline::testing
