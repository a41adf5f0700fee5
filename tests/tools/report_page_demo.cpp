// Writes a report's page with every kind of block, for the browser test and for looking at it.
// usage: report_page_demo FILE [large]
// "large": 60 tables and 60 figures, as many as a report of many studies has.

#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

#include "base/error.h"
#include "report/html.h"

namespace ridgeline::report {
namespace {

// Names as a machine, a model or a file could have them.
const std::string kHostile =
    "<img src=x onerror=\"window.injected=1\"></script><script>window.injected=2</script>&lt;b&gt; "
    "'\"`${window.injected=3}\\u003c";
const double kNan = std::numeric_limits<double>::quiet_NaN();

std::string hostile(const std::string& where) { return where + " " + kHostile; }

Figure roofline() {
  Figure figure{.id = "roofline",
                .title = "Roofline of ResNet-18, ResNet-50 and MobileNetV2 on two machines",
                .caption =
                    "Each trajectory goes from batch 32 to batch 256. Roofs are measured "
                    "ceilings of the machines.",
                .x = {"Arithmetic intensity", "FLOP/byte", true},
                .y = {"Performance", "FLOP/s", true}};
  const auto roof = [&](const std::string& name, double peak, double bandwidth,
                        const std::string& group) {
    figure.series.push_back({name,
                             SeriesStyle::roof,
                             {{1e-3, 1e-3 * bandwidth}, {peak / bandwidth, peak}, {1e6, peak}},
                             group});
  };
  roof("H200, bf16 tensor cores", 7.1e14, 4.1e12, "H200");
  roof("H200, fp32", 5.4e13, 4.1e12, "H200");
  roof("Xeon, 2 cores, fp32", 1.9e11, 2.1e10, "Xeon");
  const auto trajectory = [&](const std::string& name, const std::string& group, double intensity,
                              double rate) {
    Series series{name, SeriesStyle::line_points, {}, group};
    for (int step = 0; step < 4; ++step) {
      const double y = rate * (1.0 + 0.35 * step);
      series.points.push_back({intensity * std::pow(1.12, step), y, 0.9 * y, 1.1 * y,
                               "b" + std::to_string(32 << step)});
    }
    figure.series.push_back(series);
  };
  trajectory("resnet18, H200", "H200", 31, 1.3e13);
  trajectory("resnet50, H200", "H200", 22, 1.7e13);
  trajectory("mobilenet_v2, H200", "H200", 7, 5.2e12);
  trajectory("resnet18, Xeon", "Xeon", 29, 7.1e10);
  trajectory("mobilenet_v2, Xeon", "Xeon", 6.6, 2.3e10);
  figure.runs = {1, 2, 3};
  return figure;
}

Figure layers() {
  Figure figure{.id = "layers",
                .title = "Layers of ResNet-18 under the roofs of the Xeon",
                .x = {"Arithmetic intensity", "FLOP/byte", true},
                .y = {"Performance", "GFLOP/s", true}};
  figure.series.push_back({"fp32 peak, 190 GFLOP/s", SeriesStyle::roof, {{9, 190}, {1e4, 190}}});
  figure.series.push_back(
      {"memory bandwidth, 21 GB/s", SeriesStyle::roof, {{0.001, 0.021}, {9, 190}}});
  for (const std::string kind : {"conv2d", "batch_norm", "relu", "add"}) {
    Series series{kind, SeriesStyle::points, {}};
    for (int i = 0; i < 14; ++i) {
      const double x = (kind == "conv2d" ? 18.0 : 0.2) * (1 + 0.31 * ((i * 7) % 11));
      series.points.push_back({x,
                               std::min(190.0, 21 * x) * (0.35 + 0.04 * ((i * 5) % 9)),
                               {},
                               {},
                               "layer" + std::to_string(i / 4 + 1) + "." + std::to_string(i % 4)});
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure curves() {
  Figure figure{.id = "accuracy",
                .title = "Accuracy over epochs",
                .caption = "Test accuracy after each epoch; one step is one evaluation.",
                .x = {"Epoch"},
                .y = {"Test accuracy", "%"}};
  const std::vector<std::string> names = {"native", "onednn", "cuda", "torch-cpu", "torch-cuda"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    Series series{names[k], k == 4 ? SeriesStyle::step : SeriesStyle::line_points, {}};
    for (int epoch = 1; epoch <= 10; ++epoch) {
      const double y = 97.5 + 0.2 * static_cast<double>(k) - 30 * std::exp(-0.8 * epoch);
      series.points.push_back({static_cast<double>(epoch), y, y - 0.6, y + 0.6});
    }
    series.hidden = k == 3;
    figure.series.push_back(series);
  }
  figure.series[0].points[4].y = kNan;
  figure.notes = {"Epoch 5 of native was not evaluated."};
  return figure;
}

Figure telemetry() {
  Figure figure{
      .id = "telemetry", .title = "Power over a run", .x = {"Time", "s"}, .y = {"Power", "W"}};
  for (const std::string name : {"GPU 0", "Processor"}) {
    Series series{name, SeriesStyle::line, {}};
    for (int i = 0; i < 1500; ++i) {
      const double t = 0.1 * i;
      series.points.push_back({t, (name == "GPU 0" ? 420 : 95) * (1 - std::exp(-t / 9)) + 30 +
                                      12 * std::sin(t) + 7 * std::sin(3.7 * t)});
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure throughput() {
  Figure figure{.id = "throughput",
                .title = "Throughput by model and backend",
                .kind = FigureKind::bars,
                .x = {.title = "Model",
                      .categories = {"resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1"}},
                .y = {"Throughput", "img/s"}};
  const std::vector<std::string> names = {"native", "onednn", "torch-cpu"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    Series series{names[k], SeriesStyle::points, {}};
    for (int i = 0; i < 4; ++i) {
      if (k == 2 && i == 1) continue;
      const double y = 12.0 + 9 * i * i + 6 * static_cast<double>(k);
      series.points.push_back({static_cast<double>(i), y, 0.92 * y, 1.07 * y});
    }
    figure.series.push_back(series);
  }
  figure.series[1].points[3].y = kNan;
  return figure;
}

Figure breakdown(bool horizontal) {
  Figure figure{.id = horizontal ? "operations" : "step-times",
                .title = horizontal ? "Where the time of operations goes" : "Step time by phase",
                .kind = FigureKind::bars,
                .x = {.title = horizontal ? "Operation" : "Run", .categories = {}},
                .y = {"Time", "s"},
                .stacked = !horizontal,
                .horizontal = horizontal};
  figure.x.categories =
      horizontal ? std::vector<std::string>{"convolution, forward, 3x3 with bias and ReLU fused",
                                            "convolution, gradient of weights",
                                            "batch normalisation", "maximum pooling", "softmax"}
                 : std::vector<std::string>{"CPU, batch 32", "CPU, batch 64", "GPU, batch 32",
                                            "GPU, batch 64", "not measured"};
  const std::vector<std::string> names =
      horizontal ? std::vector<std::string>{"CPU", "GPU"}
                 : std::vector<std::string>{"data", "copy", "forward", "backward", "optimizer"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    Series series{names[k], SeriesStyle::points, {}};
    for (std::size_t i = 0; i + (horizontal ? 0 : 1) < figure.x.categories.size(); ++i) {
      series.points.push_back(
          {static_cast<double>(i), 0.0004 * static_cast<double>((i + 2) * (k + 1))});
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure many_bars() {
  Figure figure{.id = "many-bars",
                .title = "Speed-up by model, many models and machines",
                .kind = FigureKind::bars,
                .x = {.title = "Model"},
                .y = {"Speed-up", "×", true}};
  for (int i = 0; i < 16; ++i) {
    figure.x.categories.push_back("network_with_a_long_name_" + std::to_string(i));
  }
  for (const std::string name : {"laptop", "cloud CPU", "T4", "H200", "RTX 4080", "A100"}) {
    Series series{name, SeriesStyle::points, {}};
    for (int i = 0; i < 16; ++i) {
      series.points.push_back(
          {static_cast<double>(i), std::pow(1.0 + static_cast<double>(name.size()), 1 + 0.1 * i)});
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure memory() {
  Figure figure{.id = "memory",
                .title = "Memory over one training step",
                .kind = FigureKind::area,
                .x = {"Time", "ms"},
                .y = {"Memory", "B"}};
  const std::vector<std::string> names = {"parameters", "gradients", "activations", "workspace"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    Series series{names[k], k == 2 ? SeriesStyle::line : SeriesStyle::step, {}};
    for (int i = 0; i <= 60; ++i) {
      const double up = i < 30 ? i : 60 - i;
      series.points.push_back(
          {i * 0.7, k == 2 ? 4.1e7 * up + 1e7 : 4.5e7 * static_cast<double>(k + 1)});
    }
    figure.series.push_back(series);
  }
  return figure;
}

Figure timeline(int count) {
  Figure figure{.id = "timeline",
                .title = "One training step",
                .kind = FigureKind::spans,
                .x = {"Time", "s"}};
  const std::vector<std::string> groups = {"forward", "backward", "optimizer"};
  double time = 0;
  for (int i = 0; i < count; ++i) {
    const std::string group = groups[static_cast<std::size_t>(3 * i / count)];
    const double length = 1e-5 * (1 + (i * 37) % 90);
    figure.spans.push_back(
        {"Host thread", "conv2d " + std::to_string(i), group, time, time + length});
    if (i % 3 == 0) {
      figure.spans.push_back(
          {"Host thread", "im2col", "copy", time + 0.1 * length, time + 0.5 * length});
    }
    figure.spans.push_back({"cuda:0 stream 7", "sm90_xmma_fprop_" + std::to_string(i), "kernel",
                            time + 0.2 * length, time + 0.9 * length});
    time += length * 1.08;
  }
  return figure;
}

// A residual network; with branches, one like Inception.
Figure network(const std::string& id, int blocks, bool branches) {
  Figure figure{.id = id,
                .title = "Network: " + std::to_string(blocks) + " blocks",
                .caption = "Boxes are operations, shaded by their share of the time.",
                .kind = FigureKind::diagram};
  const auto add = [&](const std::string& name, const std::string& title, const std::string& group,
                       std::vector<std::string> from) {
    figure.nodes.push_back(
        {name, title, "64x56x56 · 0.23 GFLOP", group,
         group == "conv2d" ? 0.002 * static_cast<double>(1 + figure.nodes.size() % 9) : 0.0005});
    for (const std::string& source : from) figure.edges.push_back({source, name});
    return name;
  };
  std::string last = add("input", "input", "input", {});
  last = add("conv1", "conv2d 7x7", "conv2d", {last});
  for (int block = 0; block < blocks; ++block) {
    const std::string prefix =
        "layer" + std::to_string(block / 4 + 1) + "." + std::to_string(block % 4);
    const std::string start = last;
    if (branches) {
      std::vector<std::string> ends;
      for (int branch = 0; branch < 4; ++branch) {
        std::string end = start;
        for (int depth = 0; depth <= branch % 3; ++depth) {
          end = add(prefix + ".b" + std::to_string(branch) + "." + std::to_string(depth),
                    "conv2d 3x3", "conv2d", {end});
        }
        ends.push_back(end);
      }
      last = add(prefix + ".concat", "concat", "concat", ends);
      continue;
    }
    std::string end = start;
    for (int k = 1; k <= 3; ++k) {
      end = add(prefix + ".conv" + std::to_string(k), "conv2d 3x3", "conv2d", {end});
      end = add(prefix + ".bn" + std::to_string(k), "batch_norm", "batch_norm", {end});
      if (k < 3) end = add(prefix + ".relu" + std::to_string(k), "relu", "relu", {end});
    }
    std::string shortcut = start;
    if (block % 4 == 0) {
      shortcut = add(prefix + ".downsample.0", "conv2d 1x1", "conv2d", {start});
      shortcut = add(prefix + ".downsample.1", "batch_norm", "batch_norm", {shortcut});
    }
    end = add(prefix + ".add", "add", "add", {end, shortcut});
    last = add(prefix + ".relu", "relu", "relu", {end});
  }
  add("fc", "dense 512→1000", "dense", {last});
  return figure;
}

Table comparison() {
  Table table{.id = "comparison",
              .title = "Throughput by model and environment",
              .caption = "Medians with 95% intervals. Higher is better.",
              .columns = {{"Model"},
                          {"Machine"},
                          {"Parameters", "M", true, "All that is learnt."},
                          {"Throughput", "img/s", true, "Images that a second's training takes."},
                          {"Acc@1", "%", true}},
              .notes = {"Trained on synthetic images in place of Tiny-ImageNet."}};
  const std::size_t substitute = note_index(table, table.notes.front());
  const std::vector<std::string> models = {"resnet18", "mobilenet_v2", "resnet50", "squeezenet1_1"};
  for (std::size_t i = 0; i < models.size(); ++i) {
    for (const std::string machine : {"Xeon, 2 cores", "H200"}) {
      const double rate = (machine == "H200" ? 2710.0 : 11.3) * static_cast<double>(i + 1);
      Cell measured = interval(rate, 0.97 * rate, 1.04 * rate, {static_cast<RunId>(i + 1)});
      if (i % 2 == 0) measured.notes.push_back(substitute);
      table.rows.push_back(
          {words(models[i]), words(machine), number(11.2 + 3.7 * static_cast<double>(i)),
           i == 2 && machine == "H200" ? missing(table, "ran out of memory") : measured,
           i == 3 ? missing(table, "not trained to the end")
                  : number(61.5 - static_cast<double>(i))});
    }
  }
  return table;
}

// As many columns as a table of memory has, and longer names: it must fit all the same.
Table wide() {
  Table table{.id = "wide", .title = "Memory by owner", .caption = "", .columns = {}};
  for (const char* head : {"network", "machine", "batch", "executor"}) {
    table.columns.push_back({head, "", std::string(head) == "batch"});
  }
  for (const char* owner :
       {"parameters", "input", "activations", "gradients", "optimizer", "workspace",
        "other planned", "planned", "overhead", "others", "total"}) {
    table.columns.push_back({owner, "MB", true, "Bytes of this owner"});
  }
  table.columns.push_back({.title = "uuid", .shown = Shown::file});
  table.heads = 4;
  for (int i = 0; i < 24; ++i) {
    std::vector<Cell> row = {
        words(i % 2 ? "mobilenet_v2" : "resnet18"),
        words(i % 3 ? "a machine with a long name" : "H200"), number(i % 2 ? 64 : 128),
        words("cudnn on cuda:0 in bf16 (without fusion), " + std::to_string(i))};
    for (std::size_t k = 4; k < 15; ++k) {
      const double bytes = 1234.5 * static_cast<double>(i + 1) * static_cast<double>(k);
      row.push_back(k % 4 == 0 ? missing(table, "a peer does not tell") : number(bytes));
    }
    for (const char* note : {"one note", "another note", "a third note", "and a fourth"}) {
      row[14] = noted(table, std::move(row[14]), note);
    }
    row.push_back(words("0123456789abcdef-0123456789abcdef-" + std::to_string(i)));
    table.rows.push_back(std::move(row));
  }
  group_rows(table);
  return table;
}

Cards cards() {
  return {
      {{"2.3×",
        {{"On desk, native is "}, {"2.3× [2.2–2.4]", {1, 2}}, {" as fast as torch-cpu."}},
        {{"resnet18", 2.3, "2.3×"}, {"mobilenet_v2", 1.1, "1.1×, undecided"}},
        "roofline"},
       {hostile("number"), {{hostile("piece")}}, {{hostile("bar"), 1.0, hostile("text")}}, ""}}};
}

Table runs(int count) {
  Table table{.id = "runs",
              .title = "Runs",
              .caption = "Every run that this report rests on.",
              .columns = {{"Run", "", true},
                          {"Command"},
                          {"Model"},
                          {"Machine"},
                          {"Batch", "", true},
                          {"Started"},
                          {"Samples", "", true},
                          {"Median", "ms", true},
                          {"Findings"}}};
  for (int i = 1; i <= count; ++i) {
    Cell id = number(i, {i});
    id.text = std::to_string(i);
    table.rows.push_back(
        {id, words(i % 3 ? "bench" : "train"), words("resnet" + std::to_string(i % 2 ? 18 : 50)),
         words(i % 4 ? "Xeon, 2 cores" : "H200"), number(32 << (i % 3)), words("2026-11-15 12:00"),
         number(100 * i), number(3.21 * ((i * 17) % 23 + 1)),
         words(i % 7 ? "" : "the clock dropped during the run; its later samples are slower")});
  }
  return table;
}

// Every text of every block is hostile.
Section hostile_section() {
  Section section{.id = hostile("id"), .title = hostile("section"), .blocks = {}};
  section.blocks.push_back(Paragraph{{{hostile("piece"), {1}}, {hostile("strong"), {}, true}}});
  section.blocks.push_back(Listing{hostile("listing")});
  for (const std::string severity : {"note", "warning", "error", hostile("severity").c_str()}) {
    section.blocks.push_back(Notice{severity, hostile("notice"), {{hostile("piece")}}});
  }
  section.blocks.push_back(
      Judgement{hostile("statement"), hostile("verdict"), {{hostile("piece")}}});
  Table table{
      .id = hostile("table"),
      .title = hostile("table"),
      .caption = hostile("caption"),
      .columns = {{hostile("column"), hostile("unit"), false, hostile("meaning")}, {"n", "", true}},
      .notes = {hostile("note")}};
  for (int i = 0; i < 18; ++i) {
    Cell cell = words(hostile("cell " + std::to_string(i)));
    cell.notes = {0};
    table.rows.push_back({cell, number(i)});
  }
  section.blocks.push_back(table);
  Figure figure{.id = hostile("figure"),
                .title = hostile("figure"),
                .caption = hostile("caption"),
                .x = {hostile("axis"), hostile("unit")},
                .y = {hostile("axis"), hostile("unit")},
                .notes = {hostile("note")}};
  figure.series = {{hostile("one"), SeriesStyle::line_points, {{1, 2, 1, 3, "<b>p</b>"}, {2, 3}}},
                   {hostile("roof"), SeriesStyle::roof, {{1, 1}, {2, 2.5}}, hostile("group")}};
  section.blocks.push_back(figure);
  figure.kind = FigureKind::bars;
  figure.x.categories = {hostile("a"), "<i>b</i>"};
  figure.series = {{hostile("bars"), SeriesStyle::line, {{0, 2, 1, 3, hostile("label")}, {1, 3}}}};
  section.blocks.push_back(figure);
  figure.kind = FigureKind::area;
  section.blocks.push_back(figure);
  figure.kind = FigureKind::spans;
  figure.spans = {{hostile("track"), hostile("span"), hostile("group"), 0, 1},
                  {"b", "<b>", "</script>", 1, 2}};
  section.blocks.push_back(figure);
  figure.kind = FigureKind::diagram;
  figure.nodes = {{hostile("a"), hostile("node"), hostile("detail"), hostile("group"), 1.0},
                  {"b", "<b>", "", "", 0.5}};
  figure.edges = {{hostile("a"), "b"}};
  section.blocks.push_back(figure);
  return section;
}

Document demo() {
  Document document{.title = "Ridgeline: one network on two machines",
                    .subtitle =
                        "Where time, memory and energy go when convolutional networks are "
                        "trained, measured on a processor and on a GPU",
                    .generated = "2026-11-15T16:30:00Z",
                    .program = "ridgeline 0.1.0 (demo)"};
  document.sections = {
      {"summary",
       "Summary",
       {cards(),
        Judgement{"A GPU is faster.", "undecided", {{"Not measured here: no GPU."}}, false},
        Paragraph{{{"The H200 trains ResNet-18 at "},
                   {"2,710 images a second [2,629–2,818]", {1}, true},
                   {", "},
                   {"240 times", {1, 2, 5}},
                   {" the rate of the two cores of the Xeon. The gap grows with the network's "
                    "work, and larger batches come closer to the roof on both machines."}}},
        Judgement{"GPUs win most on deep networks of high intensity.",
                  "confirmed",
                  {{"The speed-up is "},
                   {"240 [231–252]", {1, 2}},
                   {" for ResNet-50 and 61 [58–64] for SqueezeNet 1.1."}}},
        Judgement{
            "Larger batches move closer to the roof.",
            "not confirmed",
            {{"From batch 32 to 256 the share of the roof changes by 0.4 [−1.2–2.0] points."}}},
        Judgement{"The speed-up varies with the model's complexity.",
                  "undecided",
                  {{"Two networks are too few: the interval of the slope holds 0."}}},
        Notice{"warning",
               "accuracy at chance",
               {{"Run 7 ended at 10.1%: with ten classes that is guessing. Its throughput counts, "
                 "its accuracy does not.",
                 {7}}}},
        Notice{"note", "substitute", {{"Synthetic images took the place of Tiny-ImageNet."}}},
        Notice{"error",
               "above the roof",
               {{"A point stands above its roof: either the ceiling or the count of work is wrong.",
                 {3}}}}}},
      {"results",
       "Results",
       {Paragraph{
            {{"Each model was trained for one epoch; the first iterations are not counted."}}},
        comparison(), throughput()},
       {{"results-roofline", "Under the roofs", {roofline(), layers()}},
        {"results-time",
         "Where the time goes",
         {breakdown(false), breakdown(true), many_bars(), timeline(1500)}},
        {"results-memory", "Memory and power", {wide(), memory(), telemetry()}, {}, true},
        {"results-convergence", "Convergence", {curves()}}}},
      {"networks",
       "Networks",
       {network("small-network", 2, false), network("residual-network", 16, false),
        network("branching-network", 9, true)}},
      {"method",
       "Method",
       {Paragraph{{{"To repeat a run:"}}},
        Listing{"ridgeline bench resnet18 --batch 32 --device cpu --store ridgeline.db\nridgeline "
                "report --store ridgeline.db --output report.html"}}},
      hostile_section(),
      {"appendix", "Runs and samples", {runs(64)}, {}, true}};
  return document;
}

Document large() {
  Document document = demo();
  for (int i = 0; i < 60; ++i) {
    Section section{"more-" + std::to_string(i), "Study " + std::to_string(i), {}};
    Table table = runs(40);
    table.id = "rows-" + std::to_string(i);
    section.blocks.push_back(table);
    Figure figure = i % 5 == 0   ? timeline(1200)
                    : i % 5 == 1 ? telemetry()
                    : i % 5 == 2 ? network("n", 12, false)
                    : i % 5 == 3 ? roofline()
                                 : many_bars();
    section.blocks.push_back(figure);
    document.sections.push_back(section);
  }
  return document;
}

}  // namespace
}  // namespace ridgeline::report

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: report_page_demo FILE [large]\n";
    return 2;
  }
  const bool is_large = argc > 2 && std::string(argv[2]) == "large";
  std::ofstream(argv[1], std::ios::binary) << ridgeline::report::html_page(
      is_large ? ridgeline::report::large() : ridgeline::report::demo());
  return 0;
}
