// Tables and text fit the width that there is.

#include <gtest/gtest.h>

#include "base/parse.h"
#include "base/text.h"
#include "base/wrap.h"

namespace ridgeline {
namespace {

TextTable sample() {
  TextTable table({"name", "time", "share", "remark"}, "lrrl");
  table.add_row(
      {"conv2d_backward_weights_of_the_first_layer", "3.11 ms", "22.2%", "a long remark"});
  table.add_row({"pool", "1.30 ms", "9.2%", "short"});
  return table;
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  for (const std::string_view line : pieces_of(text, "\n")) {
    widest = std::max(widest, display_width(line));
  }
  return widest;
}

TEST(Table, IsWholeWithoutALimit) {
  EXPECT_EQ(sample().text(TableView{}), sample().text());
  EXPECT_EQ(sample().text(TableView{.width = 200}), sample().text());
}

TEST(Table, FitsEveryWidthAndSaysWhatIsMissing) {
  const TextTable table = sample();
  for (std::size_t width = 30; width < 80; ++width) {
    const std::string text = table.text(TableView{.width = width, .hint = "--wide"});
    EXPECT_LE(widest_line(text), width) << text;
    EXPECT_EQ(text == table.text(), text.find("--wide") == std::string::npos) << text;
  }
}

TEST(Table, KeepsTheImportantColumnsInTheirPlaces) {
  TextTable table = sample();
  table.important({"share", "name"});
  const std::string text = table.text(TableView{.width = 30});
  EXPECT_EQ(text.find("name"), 0U) << text;
  EXPECT_NE(text.find("22.2%"), std::string::npos) << text;
  EXPECT_EQ(text.find("3.11 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("not shown: time, remark"), std::string::npos) << text;
}

TEST(Table, ShortensTextsBeforeItLeavesColumnsOut) {
  const std::string text = sample().text(TableView{.width = 60});
  EXPECT_NE(text.find("…"), std::string::npos) << text;
  EXPECT_NE(text.find("shortened: name"), std::string::npos) << text;
  EXPECT_EQ(text.find("not shown"), std::string::npos) << text;
  // A name keeps both ends.
  EXPECT_NE(text.find("conv2d"), std::string::npos) << text;
  EXPECT_NE(text.find("layer "), std::string::npos) << text;
  // Numbers are never cut.
  EXPECT_NE(text.find("3.11 ms  22.2%"), std::string::npos) << text;
}

TEST(Table, ShowsTheChosenColumnsInTheOrderGiven) {
  const std::string text = sample().text(TableView{.width = 20, .columns = {"Share", "na"}});
  EXPECT_EQ(text.find("share  name"), 0U) << text;
  EXPECT_NE(text.find("conv2d_backward_weights_of_the_first_layer"), std::string::npos);
  EXPECT_EQ(text.find("time"), std::string::npos);
  // Columns that this table lacks are no reason to show nothing.
  EXPECT_EQ(sample().text(TableView{.columns = {"colour"}}), sample().text());
}

TEST(Table, ColumnsAreFoundByNameAndByTheirFirstLetters) {
  const std::vector<std::string> titles = {"samples/s", "samples", "median ms"};
  EXPECT_EQ(column_named(titles, "samples"), 1U);
  EXPECT_EQ(column_named(titles, "SAMPLES/S"), 0U);
  EXPECT_EQ(column_named(titles, "median"), 2U);
  EXPECT_EQ(column_named(titles, "mean"), std::nullopt);
  EXPECT_EQ(column_named(titles, ""), std::nullopt);
}

TEST(Wrap, BreaksAtSpacesAndKeepsDefaultsWhole) {
  EXPECT_EQ(wrapped("one two three", 2, 4, 9), "one two\n    three");
  EXPECT_EQ(wrapped("some words [default: 64]", 0, 2, 20), "some words\n  [default: 64]");
  EXPECT_EQ(wrapped("averylongword next", 0, 0, 5), "averylongword\nnext");
}

TEST(Wrap, FoldsLongLinesAndLeavesTheOthers) {
  EXPECT_EQ(folded("short\n  a longer line of words\n", 14),
            "short\n  a longer\n      line of\n      words\n");
  EXPECT_EQ(folded("a line of any length", 0), "a line of any length");
}

}  // namespace
}  // namespace ridgeline
