// Reading study files: what is understood, and what is said about mistakes.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <set>

#include "base/embedded.h"
#include "base/error.h"
#include "study/study.h"

namespace ridgeline::study {
namespace {

constexpr const char* kHead = "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n";  // three lines

std::string with_part(const std::string& lines) {
  return fmt::format("{}[[part]]\nid = \"a\"\n{}", kHead, lines);
}

// What is said about a file; empty: nothing.
std::string complaint(const std::string& text) {
  try {
    (void)parse_study(text, "my.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return {};
}

void expect_complaint(const std::string& text, const std::vector<std::string>& words) {
  const std::string said = complaint(text);
  for (const std::string& word : words) {
    EXPECT_NE(said.find(word), std::string::npos) << "'" << word << "' in: " << said;
  }
}

TEST(StudyParse, ValuesMayDifferByScale) {
  const Study study = parse_study(
      with_part("command = \"bench\"\nmodels = [\"mlp\"]\nbatches = {small = [8, 16], full = "
                "[32, \"full\"]}\nmax_seconds = {full = 2.5}\nsamples = {full = 100}\nsettings = "
                "{hidden = {small = 4, full = "
                "[16, \"32,16\"]}, activation = \"tanh\"}\n"),
      "my.toml");
  ASSERT_EQ(study.small.size(), 1U);
  ASSERT_EQ(study.full.size(), 1U);
  EXPECT_EQ(study.small[0].batches, (std::vector<std::int64_t>{8, 16}));
  EXPECT_EQ(study.full[0].batches, (std::vector<std::int64_t>{32, kFullBatch}));
  EXPECT_FALSE(study.small[0].max_seconds);
  EXPECT_EQ(study.full[0].max_seconds, 2.5);
  ASSERT_EQ(study.full[0].settings.size(), 2U);
  EXPECT_EQ(study.full[0].settings[0].name, "activation");
  EXPECT_EQ(study.full[0].settings[1].values, (std::vector<std::string>{"16", "32,16"}));
  EXPECT_EQ(study.small[0].settings[1].values, (std::vector<std::string>{"4"}));
}

TEST(StudyParse, PartsCanBeOfOneScale) {
  const Study study =
      parse_study(with_part("command = \"bench\"\nmodels = \"mlp\"\nscales = [\"full\"]\n") +
                      "[[show]]\ntable = \"throughput\"\n[[hypothesis]]\nid = \"h\"\nstatement = "
                      "\"s\"\ntest = \"faster\"\n",
                  "my.toml");
  EXPECT_TRUE(study.small.empty());
  EXPECT_EQ(study.full.size(), 1U);
  // What names no parts is about all of them.
  EXPECT_EQ(study.definition.exhibits.at(0).parts, std::vector<std::string>{"a"});
  EXPECT_EQ(study.definition.hypotheses.at(0).parts, std::vector<std::string>{"a"});
}

TEST(StudyParse, MistakesAreToldWithFileLineAndWhatWouldBeRight) {
  expect_complaint("name = \"x\ntitle = 3\n", {"my.toml, line 1"});
  expect_complaint(std::string(kHead) + "colour = \"red\"\n",
                   {"my.toml, line 4", "unknown key 'colour'", "question"});
  expect_complaint("name = \"x\"\ntitle = 3\n", {"my.toml, line 2", "'title' must be a text"});
  expect_complaint(kHead, {"my.toml", "no [[part]]"});
  expect_complaint(std::string(kHead) + "part = 3\n", {"line 4", "[[part]]"});
  expect_complaint(with_part("models = [\"mlp\"]\n"), {"line 4", "'command' is missing"});
  expect_complaint(with_part("command = \"bensch\"\n"),
                   {"line 6", "'bensch'", "did you mean 'bench'"});
  expect_complaint(with_part("command = \"bench\"\nmodels = [\"mlp\"]\nbatchs = [3]\n"),
                   {"line 8", "'batchs'", "did you mean 'batches'", "one_at_a_time"});
  expect_complaint(with_part("command = \"bench\"\nmodels = [\"mlp\", \"resnet19\"]\n"),
                   {"line 7", "'resnet19'", "resnet18"});
  expect_complaint(with_part("command = \"bench\"\nmodels = [\"mlp\", 3]\n"),
                   {"line 7", "'models' must be a list of texts"});
  expect_complaint(
      with_part("command = \"bench\"\nmodels = \"mlp\"\nbackends = [\n\"native\",\n\"nativ\"]\n"),
      {"line 10", "'nativ'", "did you mean 'native'", "torch-cpu"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nbatches = [0]\n"),
                   {"line 8", "batch '0'"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nbatches = [8, 8]\n"),
                   {"line 8", "twice"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nbatches = {tiny = [3]}\n"),
                   {"line 8", "small and full"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nbatches = []\n"),
                   {"line 8", "empty"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nepochs = 3\n"),
                   {"line 8", "unknown key 'epochs'"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nmax_seconds = -1\n"),
                   {"line 8", "above 0"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nprecisions = [\"fp8\"]\n"),
                   {"line 8", "fp16"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nno_pass = \"fusoin\"\n"),
                   {"line 8", "did you mean 'fusion'", "inplace"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nimages = [\"64x\"]\n"),
                   {"line 8", "'64x'", "224x224"});
  expect_complaint(with_part("command = \"train\"\nmodels = \"mlp\"\ndata = \"mnits\"\n"),
                   {"line 8", "did you mean 'mnist'", "a path"});
  expect_complaint(with_part("command = \"train\"\nmodels = \"mlp\"\nsubstitute = \"mnist\"\n"),
                   {"line 8", "no 'data'"});
  expect_complaint(with_part("command = \"train\"\nmodels = \"mlp\"\nbackends = \"torch-cpu\"\n"),
                   {"line 8", "is a peer"});
  expect_complaint(with_part("command = \"train\"\nmodels = \"mlp\"\noptimizers = \"adam 3\"\n"),
                   {"line 8", "adam lr=0.001"});
  expect_complaint(
      with_part("command = \"bench\"\nmodels = \"mlp\"\nbackends = \"cuda\"\ndevices = \"cpu\"\n"),
      {"line 9", "'cuda' runs on cuda"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nbackends = \"native@cuda\"\n"),
                   {"line 8", "native runs on cpu"});
  expect_complaint(with_part("command = \"bench\"\nmodels = \"mlp\"\nsettings = {dept = 3}\n"),
                   {"line 8", "mlp has no setting 'dept'", "did you mean 'depth'"});
  expect_complaint(
      with_part(
          "command = \"bench\"\nmodels = \"mlp\"\nbatches = 3\none_at_a_time = [\"samples\"]\n"),
      {"line 9", "'samples'", "It has: batches"});
  expect_complaint(with_part("command = \"ceilings\"\nmodels = \"mlp\"\n"),
                   {"line 7", "unknown key 'models'", "devices"});
}

TEST(StudyParse, ATextWithoutItsClosingQuoteIsToldAsSuch) {
  for (const char* text : {"name = \"open\n", "name = 'open\n", "name = \"\"\"open\n"}) {
    expect_complaint(text, {"line ", "no closing quote"});
  }
}

TEST(StudyParse, NamesWithinTheFileMustFit) {
  const std::string part = with_part("command = \"ceilings\"\n");  // six lines
  expect_complaint(part + "[[part]]\nid = \"a\"\ncommand = \"ceilings\"\n",
                   {"line 8", "the id 'a' is that of line 5"});
  expect_complaint(part + "[[show]]\ntable = \"trougput\"\n",
                   {"line 8", "did you mean 'throughput'"});
  expect_complaint(part + "[[show]]\nfigure = \"pie\"\n",
                   {"line 8", "unknown figure 'pie'", "roofline"});
  expect_complaint(part + "[[show]]\ntitle = \"x\"\n", {"line 7", "either 'table' or 'figure'"});
  expect_complaint(part + "[[show]]\ntable = \"memory\"\nparts = [\"b\"]\n",
                   {"line 9", "no part has the id 'b'", "There are: a"});
  expect_complaint(part + "[[hypothesis]]\nid = \"h\"\nstatement = \"s\"\ntest = \"magic\"\n",
                   {"line 10", "unknown test 'magic'", "faster"});
}

TEST(StudyParse, TheBuiltInFilesAreWhole) {
  const std::vector<std::string> names = built_in_studies();
  EXPECT_EQ(names, (std::vector<std::string>{"quick", "environments", "from-scratch", "roofline",
                                             "profiling", "backends", "scaling"}));
  for (const std::string& name : names) {
    const Study study = find_study(name);
    EXPECT_EQ(study.definition.name, name);
    EXPECT_FALSE(study.small.empty()) << name;
    EXPECT_FALSE(study.full.empty()) << name;
    EXPECT_FALSE(study.definition.exhibits.empty()) << name;
    EXPECT_FALSE(study.definition.hypotheses.empty()) << name;
    EXPECT_EQ(study.text, embedded_file("studies/" + name + ".toml"));
    // Every part is shown somewhere.
    std::set<std::string> shown;
    for (const Exhibit& exhibit : study.definition.exhibits) {
      shown.insert(exhibit.parts.begin(), exhibit.parts.end());
    }
    for (const Part& part : study.full) EXPECT_TRUE(shown.contains(part.id)) << name << part.id;
  }
}

TEST(StudyParse, AStudyThatIsNowhere) {
  try {
    (void)find_study("quik");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'quick'"), std::string::npos);
  }
}

}  // namespace
}  // namespace ridgeline::study
