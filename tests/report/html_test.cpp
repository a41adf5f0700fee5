// The report's page as text: what is in its JSON, what cannot get out of it. How it looks and works
// is tested in a browser (tests/page).

#include "report/html.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/embedded.h"
#include "support/demo_document.h"

namespace ridgeline::report {
namespace {

using testing::count;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();
const std::string kHostile = "</script><script>alert(1)</script><!-- & \"'\\ \u2028\u2029\n";

nlohmann::json parsed(const Document& document) {
  return nlohmann::json::parse(page_json(document));
}

Document with(Block block) {
  Document document{.title = "t", .subtitle = "", .generated = "", .program = ""};
  document.sections = {{"s", "Section", {std::move(block)}}};
  return document;
}

nlohmann::json first_block(const Document& document) {
  return parsed(document)["sections"][0]["blocks"][0];
}

// Every string of the document is hostile.
Document hostile_page() {
  Document document{kHostile, kHostile, kHostile, kHostile};
  Table table{kHostile, kHostile, kHostile, {{kHostile, kHostile, false, kHostile}}};
  table.rows = {{words(kHostile)}};
  table.notes = {kHostile};
  Figure figure{.id = kHostile, .title = kHostile, .caption = kHostile};
  figure.x = {kHostile, kHostile, false, {}, {}, {kHostile}};
  figure.y = {kHostile, kHostile};
  figure.series = {{kHostile, SeriesStyle::line, {{1, 2, {}, {}, kHostile, kHostile}}, kHostile}};
  figure.notes = {kHostile};
  Figure spans = figure, diagram = figure;
  spans.kind = FigureKind::spans;
  spans.spans = {{kHostile, kHostile, kHostile, 0, 1}};
  diagram.kind = FigureKind::diagram;
  diagram.nodes = {{kHostile, kHostile, kHostile, kHostile, 0.5}};
  diagram.edges = {{kHostile, kHostile}};
  Section inner{kHostile, kHostile};
  document.sections = {
      {kHostile,
       kHostile,
       {Paragraph{{{kHostile, {1}, true}, {kHostile}}}, Listing{kHostile},
        Notice{kHostile, kHostile, {{kHostile}}}, Judgement{kHostile, kHostile, {{kHostile}}},
        table, figure, spans, diagram},
       {inner}}};
  return document;
}

TEST(HtmlPage, JsonCannotLeaveItsElement) {
  const std::string json = page_json(hostile_page());
  for (const char c : std::string("<>&\n")) EXPECT_EQ(json.find(c), std::string::npos) << c;
  EXPECT_EQ(json.find("\u2028"), std::string::npos);
  EXPECT_EQ(json.find("\u2029"), std::string::npos);
  // The escapes mean the same text.
  const nlohmann::json read = nlohmann::json::parse(json);
  EXPECT_EQ(read["title"], kHostile);
  EXPECT_EQ(read["sections"][0]["blocks"][1]["text"], kHostile);
  EXPECT_EQ(read["sections"][0]["blocks"][6]["names"][0], kHostile);
}

TEST(HtmlPage, HasOnlyItsOwnScripts) {
  const std::string page = html_page(hostile_page());
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_EQ(count(page, "</script"), 2u);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("<title>&lt;/script&gt;"), std::string::npos);
}

TEST(HtmlPage, PolicyNamesItsScriptsAndLetsNothingLoad) {
  const std::string page = html_page(hostile_page());
  const std::size_t at = page.find("Content-Security-Policy");
  ASSERT_NE(at, std::string::npos);
  const std::string policy = page.substr(at, page.find('\n', at) - at);
  EXPECT_NE(policy.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(count(policy, "'sha256-"), 2u);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_EQ(policy.find("http:"), std::string::npos);
  // Nothing but the page's own text refers to addresses: no element with a source outside it.
  for (const char* element :
       {"<img", "<iframe", "src=\"http", "@import", "url(http", "<link rel=\"stylesheet"}) {
    EXPECT_EQ(page.find(element), std::string::npos) << element;
  }
}

TEST(HtmlPage, PolicyHashesAreThoseOfTheScripts) {
  // The SHA-256 of "" in base64 is known; a page's hashes differ between its script and its style.
  const std::string page = html_page(with(Paragraph{{{"a"}}}));
  const std::string other = html_page(with(Paragraph{{{"b"}}}));
  const auto policy = [](const std::string& text) {
    const std::size_t at = text.find("script-src");
    return text.substr(at, text.find(';', text.find("style-src")) - at);
  };
  EXPECT_EQ(policy(page), policy(other));  // they do not depend on the data
  std::set<std::string> hashes;
  for (std::size_t at = page.find("'sha256-"); at != std::string::npos && hashes.size() < 2;
       at = page.find("'sha256-", at + 1)) {
    const std::string hash = page.substr(at + 8, page.find('\'', at + 1) - at - 8);
    EXPECT_EQ(hash.size(), 44u) << hash;
    EXPECT_EQ(hash.back(), '=') << hash;
    hashes.insert(hash);
  }
  EXPECT_EQ(hashes.size(), 2u);
}

TEST(HtmlPage, OwnScriptsAndStylesAreSmall) {
  std::size_t bytes = 0;
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.name.starts_with("src/report/page/")) bytes += file.text.size();
  }
  EXPECT_GT(bytes, 10'000u);
  const std::string page = html_page(with(Paragraph{}));
  EXPECT_LT(page.size(), 60'000u);
}

TEST(HtmlPage, WhatIsNotFiniteIsNull) {
  Figure figure{.id = "f", .title = "f"};
  figure.x.low = kNan;
  figure.y.high = kInfinity;
  figure.series = {
      {"s",
       SeriesStyle::line,
       {{1, kNan}, {kInfinity, 2, kNan, -kInfinity, "x"}, {3, 4}, {5, 6, {}, {}, "", "d"}}}};
  const std::string json = page_json(with(figure));
  for (const char* word : {"nan", "NaN", "inf", "Infinity"}) {
    EXPECT_EQ(json.find(word), std::string::npos) << word;
  }
  const nlohmann::json block = first_block(with(figure));
  EXPECT_FALSE(block["x"].contains("low"));
  EXPECT_FALSE(block["y"].contains("high"));
  const nlohmann::json& points = block["series"][0]["points"];
  EXPECT_EQ(
      points,
      nlohmann::json::parse(
          "[[1, null], [null, 2, null, null, \"x\"], [3, 4], [5, 6, null, null, \"\", \"d\"]]"));

  Table table{"t", "t", "", {{"a", "", true}}};
  table.rows = {{Cell{.text = "n/a", .value = kNan, .low = kInfinity, .high = 1.0}}};
  const nlohmann::json cell = first_block(with(table))["rows"][0][0];
  EXPECT_TRUE(cell["v"].is_null());
  EXPECT_TRUE(cell["l"].is_null());
  EXPECT_EQ(cell["h"], 1.0);

  Figure spans{.id = "s", .title = "s", .kind = FigureKind::spans};
  spans.spans = {{"track", "name", "group", 0.5, kNan}};
  EXPECT_EQ(first_block(with(spans))["spans"], nlohmann::json::parse("[[0, 0, 0, 0.5, null]]"));
}

TEST(HtmlPage, TablesAreComplete) {
  Table table{"t", "Title", "Caption", {{"Model"}, {"Rate", "img/s", true, "Meaning."}}};
  Cell measured = interval(1107.25, 1098.5, 1115.125, {7, 9});
  measured.notes = {note_index(table, "Synthetic data.")};
  table.rows = {{words("resnet18"), measured}, {words("resnet50"), missing(table, "no memory")}};
  const nlohmann::json block = first_block(with(table));
  EXPECT_EQ(block["columns"][1]["unit"], "img/s");
  EXPECT_EQ(block["columns"][1]["number"], true);
  EXPECT_EQ(block["columns"][1]["meaning"], "Meaning.");
  EXPECT_EQ(block["rows"][0][0], "resnet18");
  const nlohmann::json& cell = block["rows"][0][1];
  EXPECT_EQ(cell["t"], measured.text);
  EXPECT_EQ(cell["v"], 1107.25);  // in full
  EXPECT_EQ(cell["l"], 1098.5);
  EXPECT_EQ(cell["h"], 1115.125);
  EXPECT_EQ(cell["r"], nlohmann::json::parse("[7, 9]"));
  EXPECT_EQ(block["rows"][1][1]["t"], "n/a");
  EXPECT_FALSE(block["rows"][1][1].contains("v"));
  EXPECT_EQ(block["notes"], nlohmann::json::parse(R"(["Synthetic data.", "no memory"])"));
  EXPECT_FALSE(block.contains("runs"));
  table.id = "runs";
  EXPECT_EQ(first_block(with(table))["runs"], true);
}

TEST(HtmlPage, DiagramsNameTheEndsOfArrowsByPlace) {
  Figure figure{.id = "d", .title = "d", .kind = FigureKind::diagram};
  figure.nodes = {{"a", "A", "", "conv", 0.25}, {"b", "B", "x", "", 0.0}};
  figure.edges = {{"a", "b"}, {"a", "nowhere"}};
  const nlohmann::json block = first_block(with(figure));
  EXPECT_EQ(block["edges"], nlohmann::json::parse("[[0, 1]]"));
  EXPECT_EQ(block["nodes"][0]["weight"], 0.25);
  EXPECT_FALSE(block["nodes"][1].contains("weight"));
}

void collect_ids(const nlohmann::json& value, std::vector<std::string>& ids) {
  if (value.is_object() && value.contains("id") && value["id"].is_string()) {
    ids.push_back(value["id"]);
  }
  for (const nlohmann::json& inner : value) {
    if (inner.is_structured()) collect_ids(inner, ids);
  }
}

TEST(HtmlPage, IdsAreUniqueAndPlain) {
  Document document = with(Paragraph{});
  Table table{.id = "same", .title = "t", .caption = "", .columns = {}};
  Figure figure{.id = "same", .title = "f"};
  Figure reserved{.id = "run-3", .title = "f"}, own{.id = "page-data", .title = "f"},
      none{.id = "", .title = "f"};
  document.sections = {
      {"same", "A", {table, figure, reserved, own, none}, {{"same", "B"}, {"a b\"<", "C"}}}};
  std::vector<std::string> ids;
  collect_ids(parsed(document), ids);
  ASSERT_EQ(ids.size(), 8u);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
  for (const std::string& id : ids) {
    EXPECT_FALSE(id.empty());
    EXPECT_FALSE(id.starts_with("run-")) << id;
    EXPECT_FALSE(id.starts_with("page-")) << id;
    EXPECT_EQ(
        id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"),
        std::string::npos)
        << id;
  }
}

TEST(HtmlPage, BrokenUtf8IsReplaced) {
  const nlohmann::json block = first_block(with(Listing{"host\xff\xc3name"}));
  EXPECT_EQ(block["text"], "host\ufffd\ufffdname");
}

}  // namespace
}  // namespace ridgeline::report
