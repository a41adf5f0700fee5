// Reports as files: Markdown, LaTeX, CSV, pictures, and the folder that holds them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "report/csv.h"
#include "report/files.h"
#include "report/latex.h"
#include "report/make_document.h"
#include "report/markdown.h"
#include "report/pictures.h"
#include "report/plot/draw.h"
#include "report/plot/network.h"
#include "report/plot/text_size.h"
#include "support/data_files.h"
#include "support/demo_document.h"
#include "support/report_tables.h"
#include "support/small_disk.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

bool has_program(const std::string& name) {
  std::istringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (access((fs::path(folder) / name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Another PATH while it lives.
class Path {
 public:
  explicit Path(const fs::path& folder) : before_(std::getenv("PATH")) {
    setenv("PATH", folder.c_str(), 1);
  }
  ~Path() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

// Records of a CSV text by the rules of RFC 4180.
std::vector<std::vector<std::string>> csv_records(const std::string& text) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        record.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        record.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      record.emplace_back();
    } else if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') {
      records.push_back(record);
      record.assign(1, "");
      ++i;
    } else {
      record.back() += c;
    }
  }
  EXPECT_TRUE(record == std::vector<std::string>{""}) << "the last record has no end";
  return records;
}

const Table& table_with_id(const Document& document, const std::string& id) {
  for (const Table* table : tables_of(document)) {
    if (table->id == id) return *table;
  }
  throw std::out_of_range(id);
}

TEST(ReportCsv, NumbersReadBackAsTheyWereWithTheirIntervals) {
  Table table = table_with_id(demo_document(), "backends-throughput");
  const double odd = 0.1 + 0.2;
  table.rows[1][3] = number(odd);
  const auto records = csv_records(csv_table(table));
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0], (std::vector<std::string>{
                            "model", "executor", "throughput (img/s)", "throughput low (img/s)",
                            "throughput high (img/s)", "throughput notes", "rate (GFLOP/s)",
                            "accuracy (%)", "accuracy notes"}));
  EXPECT_EQ(std::stod(records[1][2]), 1107.3);
  EXPECT_EQ(std::stod(records[1][3]), 1098.2);
  EXPECT_EQ(std::stod(records[1][4]), 1115.4);
  EXPECT_EQ(records[1][5], "Synthetic data took the place of tiny-imagenet.");
  EXPECT_EQ(records[1][7], "") << "missing is empty, not n/a";
  EXPECT_EQ(records[1][8], "No evaluation was asked for.");
  EXPECT_EQ(std::stod(records[2][6]), odd) << "all digits are kept";
  EXPECT_EQ(records[3][3], "") << "no interval";
}

TEST(ReportCsv, WordsWithCommasQuotesAndLineBreaksStayWhole) {
  const Document document = hostile_document();
  const auto records = csv_records(csv_table(table_with_id(document, "hostile-table")));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0][1], "line\nbreak (%)");
  EXPECT_EQ(records[1][0], hostile_name());
  EXPECT_EQ(records[1][4], hostile_name());
  for (const auto& record : records) EXPECT_EQ(record.size(), 5U);
  Table one{.id = "one",
            .title = "",
            .caption = "",
            .columns = {{.title = "a"}},
            .rows = {{Cell{}}},
            .notes = {}};
  EXPECT_EQ(csv_table(one), "a\r\n\"\"\r\n") << "an empty line would be no record";
}

// Columns of a row of a Markdown table: by the bars that are not escaped.
std::size_t markdown_columns(const std::string& line) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '|') {
      ++bars;
    }
  }
  return bars - 1;
}

TEST(ReportMarkdown, TablesHaveTheirColumnsMarksAndNotes) {
  const std::string text = markdown_table(table_with_id(demo_document(), "backends-throughput"));
  expect_contains(
      text, {"**Throughput by model and executor**", "| model | executor | throughput (img/s) |",
             "|---|---|---:|---:|---:|", "| 1,107 [1,098–1,115] (a) |", "| n/a (b) |",
             "mobilenet_v2", "(a) Synthetic data took the place"});
}

TEST(ReportMarkdown, HasNoElementsOfHtml) {
  for (const Document& document : {demo_document(), hostile_document()}) {
    std::string text = markdown_document(document, {});
    for (std::size_t fence = text.find("```"); fence != std::string::npos;
         fence = text.find("```")) {
      const std::size_t inside = text.find_first_not_of('`', fence);
      const std::string mark = "\n" + text.substr(fence, inside - fence) + "\n";
      text.erase(fence, text.find(mark, inside) + mark.size() - fence);
    }
    EXPECT_EQ(text.find('<'), std::string::npos) << text.substr(text.find('<'), 60);
  }
}

TEST(ReportMarkdown, HostileNamesAreText) {
  const std::string table = markdown_table(table_with_id(hostile_document(), "hostile-table"));
  std::istringstream lines(table);
  int rows = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) continue;
    ++rows;
    EXPECT_EQ(markdown_columns(line), 2U) << line;
  }
  EXPECT_EQ(rows, 4);
  std::string document = markdown_document(hostile_document(), {});
  // Within the fence everything is text.
  const std::size_t fence = document.find("````\n"), end = document.find("\n````\n", fence + 5);
  ASSERT_NE(end, std::string::npos) << "the fence is longer than any in the text";
  document.erase(fence, end + 6 - fence);
  EXPECT_EQ(count(document, "<img"), 0U);
  EXPECT_EQ(count(document, "</script"), 0U);
  EXPECT_EQ(count(document, "](b)"), count(document, "\\](b)")) << "no link";
}

TEST(ReportMarkdown, EscapesOnlyWhatMeansSomething) {
  EXPECT_EQ(markdown_text("mobilenet_v2 on cuda:0 [1.2–1.4] (95%)"),
            "mobilenet_v2 on cuda:0 [1.2–1.4] (95%)");
  EXPECT_EQ(markdown_text("_a_ *b* `c` ~d~ $e$ <f> &amp; g|h"),
            "\\_a\\_ \\*b\\* \\`c\\` \\~d\\~ \\$e\\$ &lt;f&gt; &amp;amp; g\\|h");
  EXPECT_EQ(markdown_text("a\nb\tc"), "a b c");
  EXPECT_EQ(markdown_text("\xff"), "\xef\xbf\xbd") << "what is no UTF-8";
  Document document{.title = "t", .subtitle = "1. no list", .generated = "", .program = ""};
  document.sections.push_back({.id = "a", .title = "- title"});
  document.sections[0].blocks.emplace_back(Paragraph{{{.text = "- no list"}}});
  document.sections[0].blocks.emplace_back(Paragraph{{{.text = "# no heading"}}});
  expect_contains(markdown_document(document, {}),
                  {"\n1\\. no list\n", "\n## - title\n", "\n\\- no list\n", "\n\\# no heading\n"});
}

TEST(ReportLatex, EverySignIsEscapedOrComposed) {
  EXPECT_EQ(latex_text("100% of $5 & #1_a {x} ~ ^ \\"),
            "100\\% of \\$5 \\& \\#1\\_a \\{x\\} \\textasciitilde{} \\textasciicircum{} "
            "\\textbackslash{}");
  EXPECT_EQ(latex_text("1–2 × 3 °C · 4 µs ± 5"),
            "1--2 \\ensuremath{\\times} 3 \\textdegree{}C \\ensuremath{\\cdot} 4 "
            "\\ensuremath{\\mu}s \\ensuremath{\\pm} 5");
  EXPECT_EQ(latex_text("--seed \"a\" 'b'"),
            "-{}-seed \\textquotedbl{}a\\textquotedbl{} \\textquotesingle{}b\\textquotesingle{}");
  EXPECT_EQ(latex_text("é 中 \xff"), "é [U+4E2D] [U+FFFD]");
  EXPECT_EQ(latex_text("a\nb"), "a b");
}

// \begin and \end in their order.
void expect_balanced(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at + 1)) {
    const bool begins = text.compare(at, 7, "\\begin{") == 0;
    if (!begins && text.compare(at, 5, "\\end{") != 0) continue;
    const std::size_t name = text.find('{', at) + 1;
    const std::string environment = text.substr(name, text.find('}', name) - name);
    if (begins) {
      open.push_back(environment);
    } else {
      ASSERT_FALSE(open.empty()) << environment;
      EXPECT_EQ(open.back(), environment);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(ReportLatex, TablesAreFloatsWithLabelsCaptionsAndNotes) {
  const std::string text = latex_table(table_with_id(demo_document(), "backends-throughput"));
  expect_contains(text, {"\\begin{table}[htbp]", "\\begin{tabular}{llrrr}", "\\toprule",
                         "\\label{tab:backends-throughput}", "throughput (img/s) & rate",
                         "1,107 [1,098--1,115]\\textsuperscript{a} & 12,061", "mobilenet\\_v2",
                         "\\textsuperscript{b}~No evaluation was asked for."});
  expect_balanced(text);
  // Long cells of words are wrapped, long tables go from page to page.
  Table wide = table_with_id(demo_document(), "environments");
  EXPECT_NE(latex_table(wide).find("p{0."), std::string::npos);
  while (wide.rows.size() < 60) wide.rows.push_back(wide.rows[0]);
  EXPECT_NE(latex_table(wide).find("\\begin{longtable}"), std::string::npos);
  expect_balanced(latex_table(wide));
  expect_balanced(latex_document(demo_document(), {}));
  expect_balanced(latex_document(hostile_document(), {}));
}

// Signs between the cells of each row; escaped ones are none.
std::set<std::size_t> cells_of_rows(const std::string& text) {
  std::set<std::size_t> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool row = line.ends_with("\\\\") && line.find(" & ") != std::string::npos;
    if (row) counts.insert(count(line, " & "));
  }
  return counts;
}

TEST(ReportLatex, WideTablesGoOnInPartsAndAreNeverScaled) {
  Table table{.id = "wide", .title = "Wide", .caption = "", .columns = {{.title = "name"}}};
  for (int i = 0; i < 30; ++i) {
    table.columns.push_back({"memory controller " + std::to_string(i), "GFLOP/s", true});
  }
  for (int row = 0; row < 50; ++row) {
    std::vector<Cell> cells = {
        words("a_name-without/any:space=that,is.long_" + std::to_string(row))};
    for (int i = 0; i < 30; ++i) cells.push_back(interval(1200.0, 1100.0, 1300.0));
    table.rows.push_back(std::move(cells));
  }
  const std::string text = latex_table(table);
  expect_balanced(text);
  EXPECT_EQ(text.find("resizebox"), std::string::npos);
  EXPECT_GE(count(text, "\\begin{longtable}"), 3U);
  EXPECT_EQ(count(text, "\\label{tab:wide}"), 1U);
  EXPECT_EQ(count(text, "\\label{tab:wide-2}"), 1U);
  for (int i = 0; i < 30; ++i) {
    EXPECT_NE(text.find("controller\\\\{}" + std::to_string(i) + "\\\\{}(GFLOP/s)"),
              std::string::npos)
        << i;
  }
  // Numbers stand above their intervals, names can be broken, and every part has all its cells.
  expect_contains(text,
                  {"\\shortstack[r]{1,200\\\\{}[1,100--1,300]}", "name-\\allowbreak{}without"});
  EXPECT_LE(cells_of_rows(text).size(), 2U);
}

TEST(ReportLatex, HeadingsStandAboveTheRowsThatShareThem) {
  Table table{.id = "t", .title = "T", .caption = "", .columns = {{.title = "network"}}};
  table.columns.push_back({.title = "executor"});
  table.columns.push_back({.title = "rate", .number = true});
  for (const char* network : {"mlp", "resnet18"}) {
    for (const char* executor : {"native", "onednn"}) {
      table.rows.push_back({words(network), words(executor), number(3.0)});
    }
  }
  table.heads = 2;
  group_rows(table);
  const std::string text = latex_table(table);
  expect_contains(
      text, {"\\begin{tabular}{lr}", "{\\textbf{mlp}}", "{\\textbf{resnet18}}", "native & 3.00"});
  EXPECT_EQ(cells_of_rows(text), std::set<std::size_t>{1});
  expect_contains(markdown_table(table),
                  {"| executor | rate |", "| **mlp** ||", "| native | 3.00 |"});
}

// Every figure of both documents.
struct AllFigures {
  Document demo = demo_document(), hostile = hostile_document();
  std::vector<const Figure*> figures = figures_of(demo);
  AllFigures() {
    for (const Figure* figure : figures_of(hostile)) figures.push_back(figure);
  }
};

bool go_on(std::size_t) { return true; }

class ReportPictures : public FileTest {};

TEST_F(ReportPictures, EveryKindIsDrawnWhateverItsNamesAndValues) {
  if (!has_program("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  const AllFigures all;
  std::size_t calls = 0;
  const auto problems = draw_pictures(all.figures, folder_, {true, true, false}, [&](std::size_t) {
    ++calls;
    return true;
  });
  for (const PictureProblem& problem : problems) {
    ADD_FAILURE() << problem.figure << ": " << problem.reason;
  }
  EXPECT_EQ(calls, all.figures.size());
  for (const Figure* figure : all.figures) {
    const std::string png = contents_of(folder_ / (figure->id + ".png"));
    EXPECT_TRUE(png.starts_with("\x89PNG")) << figure->id;
    const std::string svg = contents_of(folder_ / (figure->id + ".svg"));
    EXPECT_NE(svg.find("</svg>"), std::string::npos) << figure->id;
    EXPECT_EQ(svg.find("<img"), std::string::npos) << figure->id;
    EXPECT_EQ(svg.find("</script"), std::string::npos) << figure->id;
  }
  // Names are there letter by letter, notes too.
  const std::string svg = contents_of(folder_ / "hostile-xy.svg");
  expect_contains(svg, {"&lt;/script&gt;", "{}\\\\'", "%s \\n", "é–×°·µ",
                        "2 values of zero or below have no place on a logarithmic axis."});
  expect_contains(contents_of(folder_ / "nothing-positive.svg"), {"2 values of zero or below"});
  expect_contains(contents_of(folder_ / "one-bar.svg"), {"One value of zero or below"});
  expect_contains(contents_of(folder_ / "throughput-bars.svg"),
                  {">n/a<", "11,073", "auto on cuda"});
  expect_contains(contents_of(folder_ / "roofline-networks.svg"),
                  {"H200: memory", "squeezenet1_1", "arithmetic intensity (FLOP/B)", "10,000"});
  // Nothing but the pictures is left.
  EXPECT_EQ(static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})),
            2 * all.figures.size());
}

TEST_F(ReportPictures, PdfIsDrawnForLatex) {
  if (!has_program("rsvg-convert")) GTEST_SKIP() << "rsvg-convert is not installed";
  const Document document = demo_document();
  const std::vector<const Figure*> figures = {figures_of(document)[0]};
  EXPECT_TRUE(draw_pictures(figures, folder_, {false, false, true}, go_on).empty());
  EXPECT_TRUE(contents_of(folder_ / (figures[0]->id + ".pdf")).starts_with("%PDF"));
}

TEST_F(ReportPictures, WithoutTheConverterThereIsSvgAndAWord) {
  const Path nothing(folder_);
  const AllFigures all;
  const auto problems = draw_pictures(all.figures, folder_, {}, go_on);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].figure, "");
  expect_contains(problems[0].reason, {"rsvg-convert was not found", "librsvg2-bin"});
  for (const Figure* figure : all.figures) {
    EXPECT_TRUE(fs::exists(folder_ / (figure->id + ".svg"))) << figure->id;
    EXPECT_FALSE(fs::exists(folder_ / (figure->id + ".png"))) << figure->id;
  }
  EXPECT_TRUE(draw_pictures(all.figures, folder_, {true, false, false}, go_on).empty())
      << "it is not needed";
  EXPECT_TRUE(draw_pictures(all.figures, folder_, {false, false, false}, go_on).empty())
      << "not asked for";
}

TEST_F(ReportPictures, WhatTheConverterSaysIsPassedOn) {
  const fs::path script =
      write("rsvg-convert", "#!/bin/sh\necho 'line 3: undefined words' >&2\nexit 1\n");
  fs::permissions(script, fs::perms::owner_all);
  const Path here(folder_);
  const Document document = demo_document();
  const std::vector<const Figure*> figures = {figures_of(document)[0], figures_of(document)[1]};
  const auto problems = draw_pictures(figures, folder_, {}, go_on);
  ASSERT_EQ(problems.size(), 2U) << "one failure does not end the others";
  const std::set<std::string> named = {problems[0].figure, problems[1].figure};
  EXPECT_EQ(named, (std::set<std::string>{figures[0]->id, figures[1]->id}));
  expect_contains(problems[0].reason, {"line 3: undefined words"});
  EXPECT_TRUE(fs::exists(folder_ / (figures[0]->id + ".svg"))) << "which needs no converter";
}

TEST_F(ReportPictures, StopsWhenAsked) {
  const AllFigures all;
  EXPECT_TRUE(draw_pictures(all.figures, folder_, {true, false, false}, [](std::size_t) {
                return false;
              }).empty());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST(ReportPlot, TextCannotLeaveItsElement) {
  EXPECT_EQ(plot::escaped("<b> & \"x\"\n"), "&lt;b&gt; &amp; &quot;x&quot; ");
  EXPECT_EQ(plot::escaped("a\xff"), "a\xef\xbf\xbd");
  plot::Svg svg;
  svg.text(1.0, 2.0, "\"var(--ink)\"", {});
  expect_contains(plot::light_colours(std::move(svg).text()), {">&quot;var(--ink)&quot;</text>"});
}

TEST(ReportPlot, PageAndFileHaveTheSameDrawing) {
  const AllFigures all;
  const plot::Colours colours(all.figures);
  for (const Figure* figure : all.figures) {
    const plot::Drawing drawing = plot::draw(*figure, colours);
    const std::string page = plot::page_drawing(*figure, drawing);
    const std::string file = plot::svg_file(*figure, drawing);
    EXPECT_NE(page.find(drawing.elements), std::string::npos) << figure->id;
    EXPECT_NE(file.find(plot::light_colours(drawing.elements)), std::string::npos) << figure->id;
    EXPECT_EQ(page.find("=\"#"), std::string::npos) << figure->id << ": the page chooses colours";
    EXPECT_EQ(file.find("\"var("), std::string::npos) << figure->id << ": the file has no page";
    EXPECT_EQ(page.find(" id=\""), std::string::npos) << figure->id << ": ids would repeat";
    for (const char* word : {"nan", "inf"}) {
      EXPECT_EQ(drawing.elements.find(fmt::format("\"{}", word)), std::string::npos) << figure->id;
      EXPECT_EQ(drawing.elements.find(fmt::format(" {} ", word)), std::string::npos) << figure->id;
    }
    EXPECT_EQ(count(page, "class=\"swatch\""), drawing.legend.size());
  }
}

TEST(ReportPlot, WhatIsHiddenAtFirstIsDrawnAndNotShown) {
  Figure figure{.id = "f", .title = "f"};
  figure.series = {{.name = "shown", .points = {{1, 2}, {2, 3}}},
                   {.name = "later", .points = {{1, 3}, {2, 9}}, .hidden = true}};
  const std::vector<const Figure*> figures = {&figure};
  const plot::Drawing drawing = plot::draw(figure, plot::Colours(figures));
  EXPECT_EQ(count(drawing.elements, "display=\"none\""), 1U);
  expect_contains(drawing.elements, {"data-series=\"1\" data-points=\"2\" display=\"none\""});
  const std::string file = plot::svg_file(figure, drawing);
  expect_contains(file, {">Not drawn here: later.<", ">shown<"});
  EXPECT_EQ(file.find(">later<"), std::string::npos) << "in the legend";
}

TEST(ReportPlot, ThousandsOfMarksStaySmall) {
  Figure points{.id = "p", .title = "p"}, spans{.id = "s", .title = "s", .kind = FigureKind::spans};
  points.series = {{.name = "points", .style = SeriesStyle::points, .points = {}}};
  for (int i = 0; i < 50000; ++i) {
    points.series[0].points.push_back(
        {.x = static_cast<double>(i), .y = static_cast<double>((i * 7919) % 20)});
    spans.spans.push_back({"track", "kernel", "forward", i * 1.0, i + 0.5});
  }
  const std::vector<const Figure*> figures = {&points, &spans};
  const plot::Colours colours(figures);
  const plot::Drawing dots = plot::draw(points, colours), timeline = plot::draw(spans, colours);
  // What lies on one pixel is drawn once.
  EXPECT_LT(dots.elements.size(), 200'000U);
  EXPECT_LT(timeline.elements.size(), 60'000U);
  expect_contains(dots.elements, {"data-points=\"50000\""});
  expect_contains(timeline.elements, {"data-spans=\"50000\""});
}

TEST(ReportPlot, SpansThatOverlapHaveRowsOfTheirOwn) {
  Figure figure{.id = "s", .title = "s", .kind = FigureKind::spans};
  figure.spans = {{"a", "outer", "g", 0.0, 9.0},
                  {"b", "other", "g", 0.0, 1.0},
                  {"a", "inner", "g", 1.0, 2.0},
                  {"a", "next", "g", 2.0, 3.0},
                  {"a", "broken", "g", 2.0, std::numeric_limits<double>::quiet_NaN()}};
  using Rows = std::vector<std::optional<std::size_t>>;
  EXPECT_EQ(plot::span_rows(figure), (Rows{0, 2, 1, 1, std::nullopt}));
}

TEST(ReportPlot, TicksAreRoundNumbersWithinTheAxis) {
  const auto labels = [](double low, double high, bool logarithmic) {
    std::vector<std::string> texts;
    for (const plot::Tick& tick : plot::ticks_of({low, high, logarithmic}, 6)) {
      EXPECT_GE(tick.value, low * 0.999);
      EXPECT_LE(tick.value, high * 1.001);
      if (!tick.label.empty()) texts.push_back(tick.label);
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(labels(0.0, 1.1, false), (Texts{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  EXPECT_EQ(labels(0.0, 12000.0, false),
            (Texts{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}));
  EXPECT_EQ(labels(0.05, 2000.0, true), (Texts{"0.1", "1", "10", "100", "1,000"}));
  EXPECT_EQ(labels(3.0, 40.0, true), (Texts{"5", "10", "20"}));
  EXPECT_EQ(labels(1e9, 1e12, true), (Texts{"10⁹", "10¹⁰", "10¹¹", "10¹²"}));
  Texts batches;
  for (const plot::Tick& tick : plot::ticks_of({6.0, 300.0, true}, 6, {8.0, 64.0, 256.0})) {
    batches.push_back(tick.label);
  }
  EXPECT_EQ(batches, (Texts{"8", "64", "256"})) << "powers of two stand for themselves";
}

TEST(ReportPlot, TextIsWrappedAndShortenedToItsRoom) {
  EXPECT_LE(plot::text_width(plot::shortened("mobilenet_v2 on cuda:0", 80.0, 12.0), 12.0), 80.0);
  EXPECT_EQ(plot::shortened("short", 200.0, 12.0), "short");
  const auto lines = plot::wrapped("one two three four", 60.0, 12.0);
  EXPECT_GT(lines.size(), 1U);
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : " ") + line;
  EXPECT_EQ(all, "one two three four");
  EXPECT_EQ(plot::wrapped("a b c d e f g h i j", 20.0, 12.0, 2).size(), 2U);
}

TEST(ReportPlot, ANameHasOneColourInAllFigures) {
  const Document document = demo_document();
  const std::vector<const Figure*> figures = figures_of(document);
  const plot::Colours colours(figures);
  std::map<std::string, int> used;
  for (const char* name : {"native", "onednn", "torch-cpu", "auto on cuda:0"}) {
    ++used[colours.of(name)];
  }
  EXPECT_GE(used.size(), 3U);
  EXPECT_NE(colours.of("native"), colours.of("onednn")) << "they stand in one figure";
}

TEST(ReportPlot, DeepNetworksHaveAllTheirBoxes) {
  const Figure deep = residual_network("deep", 60);
  const plot::Network network = plot::network_of(deep);
  EXPECT_GT(network.nodes.size(), 400U);
  const auto depths = plot::depths_of(network);
  for (const auto& [from, to] : network.edges) EXPECT_LT(depths[from], depths[to]);
  const std::vector<const Figure*> figures = {&deep};
  const plot::Drawing drawing = plot::draw(deep, plot::Colours(figures));
  EXPECT_EQ(count(drawing.elements, "class=\"node\""), network.nodes.size());
  EXPECT_EQ(count(drawing.elements, "class=\"edge\""), network.edges.size());
  EXPECT_GT(drawing.width, 0.4 * drawing.height) << "pages are no towers";
  // Circles, which no network has, end too.
  Figure circle = residual_network("circle", 1);
  circle.edges.push_back({"fc", "input"});
  EXPECT_EQ(plot::depths_of(plot::network_of(circle)).size(), circle.nodes.size());
}

class ReportFolderTest : public FileTest {
 protected:
  void make(const std::string& name, const std::string& contents) const {
    ReportFolder folder(folder_ / name);
    folder.write("index.html", contents);
    folder.write("tables/a.csv", contents);
    folder.commit();
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return contents_of(folder_ / name);
  }
};

TEST_F(ReportFolderTest, AFormerReportIsReplacedAsAWhole) {
  make("report", "first");
  EXPECT_EQ(read("report/tables/a.csv"), "first");
  {
    ReportFolder folder(folder_ / "report/");
    folder.write("index.html", "second");
    EXPECT_EQ(read("report/index.html"), "first") << "until it is complete";
    folder.commit();
  }
  EXPECT_EQ(read("report/index.html"), "second");
  EXPECT_FALSE(fs::exists(folder_ / "report/tables"));
  EXPECT_FALSE(fs::exists(folder_ / "report.new"));
  // An empty folder, one that LaTeX ran in, and one with folders above it that are not there yet.
  fs::create_directory(folder_ / "empty");
  make("empty", "third");
  (void)write("empty/report.aux", std::string("LaTeX"));
  make("empty", "fourth");
  EXPECT_EQ(read("empty/index.html"), "fourth");
  make("a/b/c", "fifth");
  EXPECT_EQ(read("a/b/c/index.html"), "fifth");
}

TEST_F(ReportFolderTest, WithoutCommitEverythingStaysAsItWas) {
  make("report", "first");
  {
    const ReportFolder folder(folder_ / "report");
    folder.write("index.html", "second");
  }
  EXPECT_EQ(read("report/index.html"), "first");
  EXPECT_FALSE(fs::exists(folder_ / "report.new"));
  { const ReportFolder folder(folder_ / "a/b/report"); }
  EXPECT_FALSE(fs::exists(folder_ / "a")) << "nor are folders above it left";
  // What a killed program left is no obstacle.
  fs::create_directories(folder_ / "report.new/figures");
  (void)write("report.new/.ridgeline-report", std::string());
  (void)write("report.new/figures/old.svg", std::string("old"));
  make("report", "third");
  EXPECT_EQ(read("report/index.html"), "third");
  EXPECT_FALSE(fs::exists(folder_ / "report/figures"));
}

TEST_F(ReportFolderTest, RefusesWhatIsNoReport) {
  const auto refused = [&](const std::string& name) {
    return refusal([&] { ReportFolder folder(folder_ / name); });
  };
  (void)write("file", std::string("words"));
  expect_contains(refused("file"), {"file: is a file"});
  fs::create_directories(folder_ / "photos");
  (void)write("photos/cat.jpg", std::string("cat"));
  expect_contains(refused("photos"), {"photos: is not empty and not a former report", "--out"});
  make("report", "first");
  (void)write("report/tables/thoughts.txt", std::string("mine"));
  expect_contains(refused("report"), {"thoughts.txt: the report did not write it"});
  EXPECT_EQ(read("report/tables/thoughts.txt"), "mine");
  fs::create_directories(folder_ / "other.new");
  (void)write("other.new/mine.txt", std::string("mine"));
  expect_contains(refused("other"), {"other.new: is in the way"});
  const ReportFolder first(folder_ / "busy");
  expect_contains(refused("busy"), {"another report is being written there"});
}

TEST_F(ReportFolderTest, AFullDiskLeavesTheFormerReport) {
  make("report", "first");
  try {
    const SmallDisk disk(2000);
    ReportFolder folder(folder_ / "report");
    (void)write_report(demo_document(), folder, {},
                       [](std::size_t, std::size_t, const std::string&) { return true; });
    folder.commit();
    ADD_FAILURE() << "must not go through";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 1);
    expect_contains(error.what(), {"cannot be written"});
  }
  EXPECT_EQ(read("report/index.html"), "first");
  EXPECT_FALSE(fs::exists(folder_ / "report.new"));
}

TEST_F(ReportFolderTest, AWholeReportHasAllItsFilesAndSaysWhatItLacks) {
  const Document document = demo_document();
  const auto go = [](std::size_t, std::size_t, const std::string&) { return true; };
  const Path nothing(folder_);  // no rsvg-convert
  ReportFolder folder(folder_ / "report");
  const WrittenReport written = write_report(document, folder, {}, go);
  folder.commit();
  ASSERT_EQ(written.warnings.size(), 1U);
  expect_contains(written.warnings[0], {"figures were written as SVG only", "rsvg-convert"});
  EXPECT_FALSE(written.failed) << "everything else is there";
  std::map<std::string, std::int64_t> files;
  for (const WrittenFile& file : written.files) files[file.name] = file.bytes;
  for (const char* name : {"index.html", "report.md", "report.tex", "tables/environments.md",
                           "tables/environments.tex", "tables/environments.csv"}) {
    EXPECT_GT(files[name], 0) << name;
    EXPECT_EQ(static_cast<std::int64_t>(fs::file_size(folder_ / "report" / name)), files[name]);
  }
  for (const Figure* figure : figures_of(document)) {
    const std::string name = "figures/" + figure->id + ".svg";
    EXPECT_GT(files[name], 0) << name;
    expect_contains(read("report/report.md"), {"](" + name + ")"});
  }
  expect_contains(read("report/report.tex"), {"(Not drawn: rsvg-convert was not found"});
}

TEST(ReportFormatsTest, UnknownOnesAreRefusedWithTheKnown) {
  const auto refused = [](std::vector<std::string> names) {
    return refusal([&] { (void)formats_of(names); });
  };
  expect_contains(refused({"htm"}),
                  {"--format htm", "html, markdown, latex", "did you mean 'html'"});
  expect_contains(refused({}), {"needs at least one"});
  const std::vector<std::string> two = {"csv", "pdf"};
  const ReportFormats formats = formats_of(two);
  EXPECT_TRUE(formats.csv && formats.pdf);
  EXPECT_FALSE(formats.html || formats.svg);
}

// pdfLaTeX is no part of the test's packages: where it is, everything must go through it.
class SlowReportLatex : public FileTest {};

TEST_F(SlowReportLatex, DocumentsCompile) {
  if (!has_program("pdflatex")) GTEST_SKIP() << "pdfLaTeX is not installed";
  const Data& data = testing::trial().data();
  for (const Document& document : {demo_document(), hostile_document(), make_document(data, {})}) {
    (void)write("report.tex", latex_document(document, {}));
    const std::string command =
        "cd " + folder_.string() +
        " && pdflatex -interaction=nonstopmode -halt-on-error report.tex >output 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << contents_of(folder_ / "output");
    EXPECT_TRUE(fs::exists(folder_ / "report.pdf"));
    // Nothing reaches far beyond the margin, where it would stand on something else.
    const std::string output = contents_of(folder_ / "output");
    constexpr const char* kOverfull = "Overfull \\hbox (";
    for (std::size_t at = output.find(kOverfull); at != std::string::npos;
         at = output.find(kOverfull, at + 1)) {
      if (document.title == hostile_document().title) break;
      EXPECT_LT(std::stod(output.substr(at + 16)), 60.0) << output.substr(at, 200);
    }
    fs::remove(folder_ / "report.pdf");
  }
}

}  // namespace
}  // namespace ridgeline::report
