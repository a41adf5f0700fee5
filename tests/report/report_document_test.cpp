// The whole document of stores made by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/analysis/ratios.h"
#include "report/make_document.h"
#include "support/report_store.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;
using testing::ReportRun;
using testing::ReportTraining;

class ReportDocument : public ::testing::Test {
 protected:
  ReportDocument()
      : folder_(fs::path(::testing::TempDir()) /
                (std::string("report_document_") +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    store_ = std::make_unique<Store>(folder_ / "store.db");
  }
  ~ReportDocument() override {
    store_.reset();
    fs::remove_all(folder_);
  }

  Document document(const DocumentOptions& options = {}) {
    data_ = std::make_unique<Data>(*store_);
    return make_document(*data_, options);
  }

  fs::path folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Data> data_;
};

void each_section(const std::vector<Section>& sections,
                  const std::function<void(const Section&)>& visit) {
  for (const Section& section : sections) {
    visit(section);
    each_section(section.sections, visit);
  }
}

template <typename Kind>
std::vector<const Kind*> all_of(const Document& document) {
  std::vector<const Kind*> found;
  each_section(document.sections, [&](const Section& section) {
    for (const Block& block : section.blocks) {
      if (const auto* kind = std::get_if<Kind>(&block)) found.push_back(kind);
    }
  });
  return found;
}

const Section* section_named(const Document& document, const std::string& id) {
  const Section* found = nullptr;
  each_section(document.sections, [&](const Section& section) {
    if (section.id == id) found = &section;
  });
  return found;
}

const Table* table_named(const Document& document, const std::string& begins) {
  for (const Table* table : all_of<Table>(document)) {
    if (table->id.starts_with(begins)) return table;
  }
  return nullptr;
}

std::vector<Piece> pieces_of(const Document& document) {
  std::vector<Piece> pieces;
  const auto add = [&](const std::vector<Piece>& more) {
    pieces.insert(pieces.end(), more.begin(), more.end());
  };
  for (const Paragraph* each : all_of<Paragraph>(document)) add(each->pieces);
  for (const Notice* each : all_of<Notice>(document)) add(each->pieces);
  for (const Judgement* each : all_of<Judgement>(document)) add(each->pieces);
  for (const Cards* each : all_of<Cards>(document)) {
    for (const Card& card : each->cards) add(card.pieces);
  }
  return pieces;
}

std::string text_of(const Document& document) {
  std::string text;
  for (const Piece& piece : pieces_of(document)) text += piece.text + "\n";
  return text;
}

// Ids are unique and can be file names, rows fit their columns, notes and runs exist.
void expect_sound(const Document& document, const Data& data) {
  std::set<std::string> ids;
  const auto check = [&](const std::string& id) {
    EXPECT_TRUE(ids.insert(id).second) << "twice: " << id;
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "0123456789-"),
              std::string::npos)
        << id;
  };
  std::set<RunId> known;
  for (const RunView& run : data.runs()) known.insert(run.run.id);
  for (const RunRecord& run : data.unfinished()) known.insert(run.id);
  const auto expect_known = [&](const std::vector<RunId>& runs, const std::string& where) {
    for (const RunId run : runs) EXPECT_TRUE(known.contains(run)) << where << ": " << run;
  };
  each_section(document.sections, [&](const Section& section) { check(section.id); });
  for (const Table* table : all_of<Table>(document)) {
    check(table->id);
    for (const auto& row : table->rows) {
      EXPECT_EQ(row.size(), table->columns.size()) << table->id;
      for (const Cell& cell : row) {
        for (const std::size_t note : cell.notes) EXPECT_LT(note, table->notes.size());
        expect_known(cell.runs, table->id);
      }
    }
  }
  for (const Figure* figure : all_of<Figure>(document)) {
    check(figure->id);
    EXPECT_FALSE(figure->empty()) << figure->id;
    expect_known(figure->runs, figure->id);
  }
  for (const Piece& piece : pieces_of(document)) expect_known(piece.runs, piece.text);
}

TEST_F(ReportDocument, HasAllSectionsInOrder) {
  testing::write_report_store(*store_);
  ReportRun run;
  run.part = "";
  testing::write_report_bench(*store_, run);
  const Document made = document();
  std::vector<std::string> ids;
  for (const Section& section : made.sections) ids.push_back(section.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"summary", "hypotheses", "study-trial", "other",
                                           "comparisons", "environments", "complexity",
                                           "predictions", "anomalies", "method", "appendix-runs"}));
  EXPECT_FALSE(made.title.empty());
  EXPECT_NE(made.subtitle.find("desk"), std::string::npos);
  EXPECT_NE(made.subtitle.find("server"), std::string::npos);
  EXPECT_TRUE(made.program.starts_with("ridgeline "));
  expect_sound(made, *data_);
}

TEST_F(ReportDocument, TellsHowWellRunsPredictEachOther) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  run.backend = "native";
  testing::write_report_bench(*store_, run);
  const Document few = document();
  EXPECT_EQ(table_named(few, "predictions"), nullptr);
  EXPECT_NE(text_of(few).find("5 of one backend are needed"), std::string::npos) << text_of(few);
  for (const std::int64_t batch : {16, 32, 128, 256}) {
    run.batch = batch;
    run.seconds = 0.010 / 64.0 * static_cast<double>(batch);
    testing::write_report_bench(*store_, run);
  }
  const Document made = document();
  expect_sound(made, *data_);
  const Table* table = table_named(made, "predictions-errors");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 1U);  // batches: there is one network on one device
  EXPECT_EQ(table->rows[0][1].text, "batch");
  EXPECT_EQ(table->rows[0][2].value, 5.0);
  EXPECT_LT(*table->rows[0][3].value, 25.0);
  const auto figures = all_of<Figure>(made);
  const auto figure = std::ranges::find_if(
      figures, [](const Figure* each) { return each->id == "predictions-runs"; });
  ASSERT_NE(figure, figures.end());
  ASSERT_EQ((*figure)->series.size(), 2U);  // the diagonal, and what was left out
  EXPECT_EQ((*figure)->series[1].points.size(), 5U);
  EXPECT_FALSE((*figure)->series[1].hidden);
  for (const Point& point : (*figure)->series[1].points) {
    EXPECT_LT(*point.low, point.y);
    EXPECT_GT(*point.high, point.y);
  }
  EXPECT_NE((*figure)->reading.find("off in the median"), std::string::npos);
}

// A paragraph of a few sentences, every network on every device, a roofline, then cards.
TEST_F(ReportDocument, BeginsWithTheAnswer) {
  testing::write_report_store(*store_);
  const Document made = document();
  const Section& summary = made.sections.front();
  ASSERT_GE(summary.blocks.size(), 4U);
  const auto* headline = std::get_if<Paragraph>(&summary.blocks[0]);
  ASSERT_NE(headline, nullptr);
  std::string text;
  for (const Piece& piece : headline->pieces) text += piece.text;
  std::size_t sentences = 0;
  for (std::size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1)) {
    ++sentences;
  }
  EXPECT_LE(sentences, 4U) << text;
  const auto* throughput = std::get_if<Figure>(&summary.blocks[1]);
  ASSERT_NE(throughput, nullptr);
  EXPECT_EQ(throughput->x.categories.size(), 3U);
  EXPECT_NE(throughput->reading.find("times as fast as the fastest peer in"), std::string::npos)
      << throughput->reading;
  const auto* roofline = std::get_if<Figure>(&summary.blocks[2]);
  ASSERT_NE(roofline, nullptr);
  EXPECT_EQ(roofline->id, "summary-roofline");
  std::set<std::string> ids;
  each_section(made.sections, [&](const Section& section) { ids.insert(section.id); });
  for (const Figure* figure : all_of<Figure>(made)) ids.insert(figure->id);
  const std::vector<const Cards*> cards = all_of<Cards>(made);
  ASSERT_EQ(cards.size(), 1U);
  EXPECT_GE(cards[0]->cards.size(), 3U);
  for (const Card& card : cards[0]->cards) {
    EXPECT_FALSE(card.number.empty());
    EXPECT_FALSE(card.pieces.empty());
    EXPECT_FALSE(card.bars.empty());
    EXPECT_TRUE(card.target.empty() || ids.contains(card.target)) << card.target;
  }
}

// Runs that differ by less than a machine's own changes are no headline.
TEST_F(ReportDocument, NoiseIsNoHeadline) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  testing::write_report_bench(*store_, run);
  run.backend = "torch-cpu";
  run.seconds *= 1.05;
  testing::write_report_bench(*store_, run);
  const Document made = document();
  for (const Cards* cards : all_of<Cards>(made)) {
    for (const Card& card : cards->cards) {
      for (const Piece& piece : card.pieces) {
        EXPECT_EQ(piece.text.find("torch-cpu"), std::string::npos) << piece.text;
      }
    }
  }
  const auto& headline = std::get<Paragraph>(made.sections.front().blocks.front());
  for (const Piece& piece : headline.pieces) {
    EXPECT_EQ(piece.text.find("faster"), std::string::npos) << piece.text;
  }
}

TEST_F(ReportDocument, AStudyBeginsWithItsAnswerItsFigureAndThreeSentences) {
  testing::write_report_store(*store_);
  const Document made = document();
  const Section* study = section_named(made, "study-trial");
  ASSERT_NE(study, nullptr);
  std::vector<std::size_t> kinds;
  for (const Block& block : study->blocks) kinds.push_back(block.index());
  ASSERT_GE(kinds.size(), 3U);
  EXPECT_TRUE(std::holds_alternative<Paragraph>(study->blocks.back()));
  EXPECT_TRUE(std::holds_alternative<Figure>(study->blocks[study->blocks.size() - 2]));
  EXPECT_EQ(std::get<Figure>(study->blocks[study->blocks.size() - 2]).kind, FigureKind::bars);
  EXPECT_FALSE(study->sections.empty());
  for (const Section& part : study->sections) EXPECT_TRUE(part.folded) << part.id;
}

TEST_F(ReportDocument, AnEmptyStoreSaysSo) {
  const Document made = document();
  ASSERT_EQ(made.sections.size(), 1U);
  EXPECT_NE(text_of(made).find("no complete runs"), std::string::npos);
}

TEST_F(ReportDocument, MachinesWithoutRunsAreShown) {
  testing::write_report_machines(*store_);
  const Document made = document();
  EXPECT_NE(section_named(made, "environments"), nullptr);
  expect_sound(made, *data_);
}

TEST_F(ReportDocument, BenchRunsAlone) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  testing::write_report_bench(*store_, run);
  run.backend = "onednn";
  run.seconds = 0.02;
  testing::write_report_bench(*store_, run);
  const Document made = document();
  EXPECT_NE(section_named(made, "other-benchmarks"), nullptr);
  EXPECT_EQ(section_named(made, "other-trainings"), nullptr);
  EXPECT_NE(section_named(made, "comparisons"), nullptr);
  expect_sound(made, *data_);
}

TEST_F(ReportDocument, TrainingsAlone) {
  testing::write_report_machines(*store_);
  ReportTraining training;
  training.run.part = "";
  testing::write_report_training(*store_, training);
  const Document made = document();
  EXPECT_NE(section_named(made, "other-trainings"), nullptr);
  EXPECT_EQ(section_named(made, "other-benchmarks"), nullptr);
  EXPECT_NE(text_of(made).find("84.0%"), std::string::npos) << text_of(made);
  expect_sound(made, *data_);
}

// docs/store.md: what a program writes that has no Ridgeline at hand.
TEST_F(ReportDocument, ImportedResultsOfAMac) {
  std::string samples;
  for (int i = 0; i < 20; ++i) {
    samples += std::string(i == 0 ? "" : ",") + R"({"block": )" + std::to_string(i / 2) +
               R"(, "wall_seconds": 0.0)" + std::to_string(10 + i % 3) + "}";
  }
  std::ofstream(folder_ / "mac.json")
      << R"({"ridgeline_import": 1, "environment": {"label": "a Mac", "host": "mac",
             "cpu": "Apple M2", "gpus": "M2 GPU", "fingerprint": {"os": "macOS 14"}},
             "runs": [{"started": "2026-11-01T10:00:00.000Z",
             "work": {"model": "mnist_cnn", "batch": 64, "image": "1x28x28"},
             "executor": {"backend": "torch-mps", "device": "mps"},
             "samples": [)"
      << samples << "]}]}";
  EXPECT_EQ(store_->import(folder_ / "mac.json"), 1);
  const Document made = document();
  expect_sound(made, *data_);
  EXPECT_EQ(made.subtitle, "a Mac");
  const Table* machines = table_named(made, "environments-machines");
  ASSERT_NE(machines, nullptr);
  std::set<std::string> cells;
  for (const auto& row : machines->rows) cells.insert(row[1].text);
  EXPECT_TRUE(cells.contains("macOS 14"));
  EXPECT_TRUE(cells.contains("Apple M2"));
  EXPECT_NE(table_named(made, "other-benchmarks-throughput"), nullptr);
}

TEST_F(ReportDocument, RunsAreListedWithThoseThatDidNotEnd) {
  testing::write_report_store(*store_);
  RunRecord failed = store_->runs().front();
  failed.uuid.clear();
  failed.study.clear();
  const RunId id = store_->begin(failed);
  store_->finish(id, RunStatus::failed, "the peer crashed", {}, {});
  const Document made = document();
  const Table* runs = table_named(made, "runs");
  ASSERT_NE(runs, nullptr);
  EXPECT_EQ(runs->rows.size(), store_->runs().size());
  const auto& row = runs->rows.back();
  EXPECT_EQ(row[0].runs, std::vector<RunId>{id});
  EXPECT_EQ(row[7].text, "failed");
  ASSERT_EQ(row[7].notes.size(), 1U);
  EXPECT_EQ(runs->notes[row[7].notes[0]], "the peer crashed");
  EXPECT_EQ(row[6].text, "n/a");
}

TEST_F(ReportDocument, WhatWasLeftOutAndSubstitutedIsNamed) {
  testing::write_report_store(*store_);
  const Document made = document();
  std::set<std::string> names;
  std::string text;
  const Section* study = section_named(made, "study-trial-measured");
  ASSERT_NE(study, nullptr);
  EXPECT_TRUE(study->folded);
  for (const Block& block : study->blocks) {
    if (const auto* notice = std::get_if<Notice>(&block)) {
      names.insert(notice->name);
      for (const Piece& piece : notice->pieces) text += piece.text;
    }
  }
  EXPECT_TRUE(names.contains("left out"));
  EXPECT_TRUE(names.contains("substituted data"));
  EXPECT_NE(text.find("resnet18 on cuda:0: no NVIDIA driver was found."), std::string::npos)
      << text;
}

// Nothing is claimed for a study that could not be measured.
TEST_F(ReportDocument, BuiltInStudiesWithoutRunsConfirmNothing) {
  testing::write_report_machines(*store_);
  std::size_t hypotheses = 0;
  for (const std::string& name : study::built_in_studies()) {
    const study::Study built_in = study::find_study(name);
    hypotheses += built_in.definition.hypotheses.size();
    StudyRecord record;
    record.uuid = name;
    record.name = name;
    record.scale = "small";
    record.environment = "desk";
    record.definition = built_in.text;
    store_->put(record);
  }
  const Document made = document();
  expect_sound(made, *data_);
  const std::vector<const Judgement*> judgements = all_of<Judgement>(made);
  EXPECT_GE(hypotheses, 10U);
  // The machines come with a study of their own.
  for (const StudyView& study : data_->studies()) {
    if (study.definition.name == "trial") hypotheses += study.definition.hypotheses.size();
  }
  EXPECT_EQ(judgements.size(), hypotheses);
  for (const Judgement* judgement : judgements) {
    EXPECT_EQ(judgement->verdict, "undecided") << judgement->statement;
    ASSERT_FALSE(judgement->pieces.empty());
    EXPECT_TRUE(judgement->pieces[0].text.starts_with("Not measured here"));
  }
  for (const std::string& name : study::built_in_studies()) {
    const Section* section = section_named(made, "study-" + name);
    ASSERT_NE(section, nullptr) << name;
    EXPECT_NE(section->title, name);
  }
}

TEST_F(ReportDocument, AnUnknownStudyIsRefusedWithThoseThatThereAre) {
  testing::write_report_store(*store_);
  EXPECT_NO_THROW((void)document({.title = "", .studies = {"trial"}}));
  try {
    (void)document({.title = "", .studies = {"nonsense"}});
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_NE(std::string(error.what()).find("trial"), std::string::npos);
  }
}

// A study's file without [[show]] has the tables and figures that fit its runs.
TEST_F(ReportDocument, AStudyThatNamesNoExhibitsHasTheUsualOnes) {
  testing::write_report_store(*store_);
  for (StudyRecord& record : store_->studies()) {
    record.definition = record.definition.substr(0, record.definition.find("[[show]]"));
    store_->put(record);
  }
  const Document made = document();
  expect_sound(made, *data_);
  ASSERT_TRUE(data_->studies().front().definition.exhibits.empty());
  EXPECT_NE(table_named(made, "trial-benchmarks-throughput"), nullptr);
  EXPECT_NE(table_named(made, "trial-trainings-training"), nullptr);
  const Section* study = section_named(made, "study-trial");
  ASSERT_NE(study, nullptr);
  EXPECT_TRUE(std::ranges::any_of(
      study->blocks, [](const Block& block) { return std::holds_alternative<Figure>(block); }));
}

// What one bar would show is said; every figure that is there says what there is to see.
TEST_F(ReportDocument, AFigureOfOneBarIsASentence) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  testing::write_report_bench(*store_, run);
  const Document made = document();
  for (const Figure* figure : all_of<Figure>(made)) {
    std::size_t points = 0;
    for (const Series& series : figure->series) points += series.points.size();
    EXPECT_TRUE(points != 1) << figure->id;
    EXPECT_FALSE(figure->reading.empty()) << figure->id;
    EXPECT_TRUE(figure->reading.ends_with('.')) << figure->reading;
  }
  EXPECT_NE(text_of(made).find("Throughput."), std::string::npos) << text_of(made);
}

TEST_F(ReportDocument, EveryFigureSaysWhatThereIsToSee) {
  testing::write_report_store(*store_);
  const Document made = document();
  for (const Figure* figure : all_of<Figure>(made)) {
    EXPECT_GT(figure->reading.size(), 20U) << figure->id;
    EXPECT_TRUE(figure->reading.ends_with('.')) << figure->reading;
  }
}

// A hypothesis about a device that no machine of the study has is told in one line.
TEST_F(ReportDocument, WhatCouldNotBeTestedIsNoRowOfTheTable) {
  testing::write_report_store(*store_);
  for (StudyRecord& record : store_->studies()) {
    record.definition += R"(
[[hypothesis]]
id = "tpu"
statement = "A TPU is faster."
test = "faster"
parts = ["speed"]
of = "device=tpu:0"
than = "device=cpu"
)";
    store_->put(record);
  }
  const Document made = document();
  bool told = false;
  for (const Judgement* judgement : all_of<Judgement>(made)) {
    if (judgement->statement != "A TPU is faster.") continue;
    told = true;
    EXPECT_FALSE(judgement->tested);
    EXPECT_EQ(judgement->verdict, "undecided");
  }
  EXPECT_TRUE(told);
  for (const auto& row : table_named(made, "summary-hypotheses")->rows) {
    EXPECT_NE(row[1].text, "A TPU is faster.");
  }
}

TEST_F(ReportDocument, CommandsAreShownWithoutWhatStudiesAdd) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  for (const char* end : {"", " speed/mlp", " speed/mlp --batch 64", " 'a b' --batch 64"}) {
    run.change = [&](RunRecord& record) {
      record.arguments = std::string("/opt/bin/ridgeline bench mlp") +
                         (*end ? " --study-item 0123-abc" : "") + end;
    };
    testing::write_report_bench(*store_, run);
  }
  const Document made = document();
  const Table& runs = *table_named(made, "runs");
  EXPECT_EQ(runs.rows[0][2].text, "ridgeline bench mlp");
  EXPECT_EQ(runs.rows[1][2].text, "ridgeline bench mlp");
  EXPECT_EQ(runs.rows[2][2].text, "ridgeline bench mlp --batch 64");
  EXPECT_EQ(runs.rows[3][2].text, "ridgeline bench mlp --batch 64");
}

// Text, table and figure of the same thing show the same number.
TEST_F(ReportDocument, TheSameNumberIsTheSameEverywhere) {
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  run.group = "call";
  const RunId slow = testing::write_report_bench(*store_, run);
  run.backend = "onednn";
  run.seconds = 0.004;
  const RunId fast = testing::write_report_bench(*store_, run);
  const Document made = document();
  Ratios ratios(*data_);
  const auto ratio = ratios.of(*data_->find(fast), *data_->find(slow));
  ASSERT_TRUE(ratio.has_value());
  // The ratio: in the text, and in the table of comparisons.
  EXPECT_NE(text_of(made).find(times_text(*ratio)), std::string::npos) << text_of(made);
  const Table* compared = table_named(made, "comparisons-ratios");
  ASSERT_NE(compared, nullptr);
  EXPECT_EQ(compared->rows[0][3].value, ratio->speedup);
  EXPECT_EQ(compared->rows[0][3].low, ratio->low);
  // The median iteration: in the list of runs and in the table of iterations.
  const double median = 1e3 * data_->find(fast)->seconds->value;
  const Table* runs = table_named(made, "runs");
  ASSERT_NE(runs, nullptr);
  EXPECT_EQ(runs->rows[1][6].value, median);
  // The rate: in the table and in the figure of throughput.
  const double rate = data_->find(fast)->rate->value;
  const auto shows = [&](const Cell& cell) { return cell.value == rate; };
  const Table* throughput = table_named(made, "other-benchmarks-throughput");
  ASSERT_NE(throughput, nullptr);
  bool in_table = false, in_figure = false;
  for (const auto& row : throughput->rows) {
    in_table = in_table || std::any_of(row.begin(), row.end(), shows);
  }
  for (const Figure* figure : all_of<Figure>(made)) {
    if (!figure->id.starts_with("other-benchmarks-throughput")) continue;
    for (const Series& series : figure->series) {
      for (const Point& point : series.points) in_figure = in_figure || point.y == rate;
    }
  }
  EXPECT_TRUE(in_table);
  EXPECT_TRUE(in_figure);
}

TEST_F(ReportDocument, HostileNamesStayPlainText) {
  const std::string name = "<script>alert('x')</script>&\"\\textbf{|`";
  store_->add(EnvironmentRecord{
      .key = "k", .label = name, .host = name, .cpu = name, .gpus = "", .fingerprint = "not JSON"});
  testing::write_report_machines(*store_);
  ReportRun run;
  run.part = "";
  run.environment = "k";
  run.model = name;
  run.backend = name;
  run.modes = {name};
  testing::write_report_bench(*store_, run);
  const Document made = document();
  expect_sound(made, *data_);
  EXPECT_NE(made.subtitle.find(name), std::string::npos);
  EXPECT_EQ(table_named(made, "runs")->rows[0][1].text, name);
}

TEST_F(ReportDocument, FingerprintsFromElsewhereMayHoldAnything) {
  int number = 0;
  for (const char* fingerprint :
       {"", "[]", "3", "{", R"({"cpu": 3, "gpus": {"a": 1}, "libraries": []})",
        R"({"cpu": {"caches": [1, {"level": "x"}], "vector_extensions": [1, null]}, "os": 7})",
        R"({"gpus": [null, 1, {"name": 3}], "memory_bytes": "many", "cpu_limit": "x"})"}) {
    const std::string key = "k" + std::to_string(number++);
    store_->add(EnvironmentRecord{.key = key,
                                  .label = key,
                                  .host = "h",
                                  .cpu = "c",
                                  .gpus = "g",
                                  .fingerprint = fingerprint});
  }
  EXPECT_NO_THROW((void)document());
}

TEST_F(ReportDocument, FlagsOfRunsAreListedAndSummed) {
  testing::write_report_store(*store_);
  const Document made = document();
  const Table* flags = table_named(made, "anomalies-flags");
  ASSERT_NE(flags, nullptr);
  std::set<std::string> names;
  for (const auto& row : flags->rows) names.insert(row[5].text);
  EXPECT_TRUE(names.contains("accuracy at chance"));
  EXPECT_TRUE(names.contains("substituted data"));
  const Section& summary = made.sections.front();
  std::string text;
  for (const Block& block : summary.blocks) {
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
      for (const Piece& piece : paragraph->pieces) text += piece.text;
    }
  }
  EXPECT_NE(text.find("accuracy at chance"), std::string::npos) << text;
}

TEST_F(ReportDocument, TheSummaryHasTheVerdictOfEveryHypothesis) {
  testing::write_report_store(*store_);
  const Document made = document();
  const Table* table = table_named(made, "summary-hypotheses");
  ASSERT_NE(table, nullptr);
  std::multiset<std::string> told, judged;
  for (const auto& row : table->rows) told.insert(row[1].text + ": " + row[2].text);
  const auto collect = [&](const auto& self, const std::vector<Section>& sections) -> void {
    for (const Section& section : sections) {
      for (const Block& block : section.blocks) {
        if (const auto* judgement = std::get_if<Judgement>(&block)) {
          judged.insert(judgement->statement + ": " + judgement->verdict);
        }
      }
      self(self, section.sections);
    }
  };
  collect(collect, made.sections);
  EXPECT_FALSE(judged.empty());
  EXPECT_EQ(told, judged);
}

TEST_F(ReportDocument, NoTableIsShownTwice) {
  testing::write_report_store(*store_);
  const Document made = document();
  std::multiset<std::string> tables;
  std::string paragraphs;
  const auto collect = [&](const auto& self, const std::vector<Section>& sections) -> void {
    for (const Section& section : sections) {
      for (const Block& block : section.blocks) {
        if (const auto* table = std::get_if<Table>(&block)) {
          std::string all = table->title;
          for (const auto& row : table->rows) {
            for (const Cell& cell : row) all += '|' + cell.text;
          }
          tables.insert(all);
        }
        if (const auto* paragraph = std::get_if<Paragraph>(&block)) {
          for (const Piece& piece : paragraph->pieces) paragraphs += piece.text;
        }
      }
      self(self, section.sections);
    }
  };
  collect(collect, made.sections);
  for (const std::string& table : tables) EXPECT_EQ(tables.count(table), 1U) << table;
  EXPECT_NE(paragraphs.find("Measured ceilings: compute"), std::string::npos);
  EXPECT_NE(paragraphs.find("the same as in “Environments”"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline::report
