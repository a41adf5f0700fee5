// Help, man page, completion and tables of the program itself, at the widths of terminals.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/parse.h"
#include "base/text.h"
#include "support/program.h"
#include "support/report_store.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;
using testing::Outcome;

// Every command, with the words that come before its subcommands.
const std::vector<std::string> kCommands = {
    "train",         "eval",       "infer",      "export",       "bench",        "profile",
    "compare",       "verify",     "describe",   "models",       "backends",     "data",
    "data list",     "data get",   "data check", "data pack",    "env",          "roofline",
    "store",         "store list", "store show", "store import", "store export", "store delete",
    "store columns", "study",      "study list", "study show",   "report",       "audit",
    "predict",       "help",       "version",    "completion"};

class SlowHelpCli : public testing::ProgramTest {
 protected:
  void TearDown() override {
    unsetenv("COLUMNS");
    ProgramTest::TearDown();
  }

  [[nodiscard]] std::string help_of(const std::string& command, int columns = 100) const {
    setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    const Outcome outcome = run(command + " --help");
    EXPECT_EQ(outcome.code, 0) << command << outcome.err;
    return outcome.out;
  }

  // What a command prints in a terminal so wide.
  [[nodiscard]] std::string shown(const std::string& command, int columns) const {
    setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    const Outcome outcome = run(command);
    EXPECT_TRUE(outcome.code == 0 || outcome.code >= 3) << command << outcome.err;
    return outcome.out;
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : pieces_of(text, "\n")) lines.emplace_back(line);
  return lines;
}

void expect_fits(const std::string& text, std::size_t width, const std::string& what) {
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(display_width(line), width) << what << '\n' << line;
  }
}

TEST_F(SlowHelpCli, EveryCommandHasAUsageHeadingsAndExamples) {
  for (const std::string& command : kCommands) {
    const std::string help = help_of(command);
    EXPECT_NE(help.find("\nUsage: ridgeline " + command), std::string::npos) << help;
    EXPECT_NE(help.find("\nExample"), std::string::npos) << help;
    EXPECT_NE(help.find("-h, --help"), std::string::npos) << help;
  }
}

TEST_F(SlowHelpCli, NamesAllCommands) {
  const std::string help = help_of("");
  for (const std::string& command : kCommands) {
    if (command.find(' ') != std::string::npos) continue;
    EXPECT_NE(help.find("\n  " + command + ' '), std::string::npos) << command;
  }
}

TEST_F(SlowHelpCli, LinesFitTheTerminal) {
  for (const std::string& command : kCommands) {
    expect_fits(help_of(command, 80), 80, command);
    expect_fits(help_of(command, 300), 100, command);
  }
}

TEST_F(SlowHelpCli, ShowsNothingOfTheParser) {
  for (const std::string& command : kCommands) {
    const std::string help = help_of(command);
    for (const char* innards :
         {"{", "}", "!--", "INT", "FLOAT", "UINT", "BOOLEAN", "Positionals"}) {
      EXPECT_EQ(help.find(innards), std::string::npos) << innards << " in " << help;
    }
    // A value is named by a word, its default stands in brackets.
    for (const std::string& line : lines_of(help)) {
      if (!line.starts_with("  --")) continue;
      const std::string left = line.substr(0, line.find("  ", 2));
      EXPECT_TRUE(left.find('=') == std::string::npos || left.find("NAME=VALUE") != left.npos)
          << line;
    }
  }
  EXPECT_NE(help_of("train").find("Samples per step [default: 64]"), std::string::npos);
}

TEST_F(SlowHelpCli, OptionsStandUnderHeadings) {
  for (const char* command : {"train", "bench", "profile"}) {
    const std::string help = help_of(command);
    for (const char* heading : {"\nModel:\n", "\nData:\n", "\nTraining:\n", "\nExecution:\n",
                                "\nMeasuring:\n", "\nStore:\n", "\nOutput:\n"}) {
      EXPECT_NE(help.find(heading), std::string::npos) << command << heading;
    }
  }
}

TEST_F(SlowHelpCli, HelpIsACommandToo) {
  EXPECT_EQ(run("help").out, run("--help").out);
  EXPECT_EQ(run("help train").out, run("train --help").out);
  EXPECT_EQ(run("help store list").out, run("store list --help").out);
  const Outcome wrong = run("help trian");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("did you mean 'train'"), std::string::npos) << wrong.err;
  EXPECT_EQ(run("version").out, run("--version").out);
  EXPECT_EQ(run("version").out.rfind("ridgeline ", 0), 0U);
}

TEST_F(SlowHelpCli, TheManPageHasEveryCommandAndOption) {
  const std::string page = run("help --man").out;
  EXPECT_EQ(page.rfind(".TH RIDGELINE 1", 0), 0U);
  for (const std::string& command : kCommands) {
    EXPECT_NE(page.find("\n.SS ridgeline " + command + '\n'), std::string::npos) << command;
  }
  EXPECT_NE(page.find("\\-\\-precision\\-target PERCENT"), std::string::npos);
  EXPECT_NE(page.find("\nridgeline train [MODEL] [OPTIONS]\n"), std::string::npos);
  // A line that begins with a dot is a request of roff.
  const std::set<std::string> requests = {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".nf", ".fi"};
  for (const std::string& line : lines_of(page)) {
    const bool request = line.starts_with('.');
    EXPECT_TRUE(!request || requests.contains(line.substr(0, line.find(' ')))) << line;
  }
}

// What bash would offer behind these words.
std::set<std::string> offered(const std::filesystem::path& folder, const std::string& words) {
  const std::string script =
      "source completion.bash; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ridgeline; printf '%s\\n' \"${COMPREPLY[@]}\"";
  std::ofstream(folder / "ask.sh") << script;
  const std::string command = "cd " + folder.string() + " && bash ask.sh";
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  std::set<std::string> names;
  for (const std::string& line : lines_of(text)) {
    if (!line.empty()) names.insert(line);
  }
  return names;
}

TEST_F(SlowHelpCli, BashCompletesCommandsOptionsAndValues) {
  const std::string script = run("completion bash").out;
  std::ofstream(folder_ / "completion.bash") << script;
  const auto offers = [&](const std::string& words, const std::string& name) {
    return offered(folder_, words).contains(name);
  };
  EXPECT_TRUE(offers("ridgeline ''", "bench"));
  EXPECT_FALSE(offers("ridgeline ''", "options"));
  EXPECT_TRUE(offers("ridgeline st", "study"));
  EXPECT_TRUE(offers("ridgeline store ''", "list"));
  EXPECT_TRUE(offers("ridgeline store list --wh", "--where"));
  EXPECT_FALSE(offers("ridgeline store list --ep", "--epochs"));
  EXPECT_TRUE(offers("ridgeline train --ep", "--epochs"));
  EXPECT_FALSE(offers("ridgeline bench --as", "--as-process"));
  EXPECT_TRUE(offers("ridgeline train res", "resnet18"));
  EXPECT_TRUE(offers("ridgeline train mlp --precision b", "bf16"));
  EXPECT_TRUE(offers("ridgeline bench mlp --backend torch", "torch-cpu"));
  // A file's name is up to the shell.
  EXPECT_TRUE(offered(folder_, "ridgeline train mlp --weights ''").empty());
}

TEST_F(SlowHelpCli, OtherShellsGetEveryOptionToo) {
  const std::string zsh = run("completion zsh").out, fish = run("completion fish").out;
  EXPECT_EQ(zsh.rfind("#compdef ridgeline", 0), 0U);
  std::istringstream options(run("options").out);
  for (std::string command, option, kind; options >> command >> option >> kind;) {
    if (command == "options") continue;
    if (option == "--as-process" || option == "--as-rank" || option == "--study-item") continue;
    EXPECT_NE(zsh.find(option), std::string::npos) << option;
    EXPECT_NE(fish.find("-l " + option.substr(2)), std::string::npos) << option;
  }
  const Outcome wrong = run("completion tcsh");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("bash, zsh, fish"), std::string::npos) << wrong.err;
}

TEST_F(SlowHelpCli, BackendsListsThePeersWithReasons) {
  const Json document = Json::parse(run("backends --json").out);
  std::set<std::string> names;
  for (const Json& peer : document.at("peers")) {
    names.insert(peer.at("name"));
    EXPECT_EQ(peer.at("available").get<bool>(), peer.at("reason").get<std::string>().empty());
    EXPECT_FALSE(peer.at("started").get<bool>());
  }
  for (const char* name : {"torch-cpu", "torch-cuda", "torch-mps", "numpy", "numba-cpu"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  setenv("RIDGELINE_PYTHON", "/nowhere/python3", 1);
  const Json without = Json::parse(run("backends --json").out);
  const Json started = Json::parse(run("backends --json --start-peers").out);
  unsetenv("RIDGELINE_PYTHON");
  for (const Json& list : {without.at("peers"), started.at("peers")}) {
    for (const Json& peer : list) {
      EXPECT_FALSE(peer.at("available").get<bool>());
      EXPECT_NE(peer.at("reason"), "");
    }
  }
}

// Commands that need nothing but the program.
TEST_F(SlowHelpCli, TablesFitTheTerminal) {
  for (const int width : {80, 120}) {
    for (const char* command :
         {"models", "backends", "data list", "study list", "study backends --dry-run",
          "describe resnet18 --per-layer --batch 1,2,4,8,16,32,64 --memory 1GiB"}) {
      expect_fits(shown(command, width), static_cast<std::size_t>(width), command);
    }
  }
  const std::string narrow = shown("backends", 80);
  EXPECT_EQ(narrow.rfind("name ", 0), 0U) << narrow;
  EXPECT_NE(narrow.find("available"), std::string::npos);
  EXPECT_NE(narrow.find("--wide"), std::string::npos) << narrow;
  EXPECT_EQ(shown("backends --wide", 80), shown("backends", 1000));
}

TEST_F(SlowHelpCli, PipedTablesAreWhole) {
  const std::string whole = run("models").out;
  EXPECT_EQ(whole.find("…"), std::string::npos) << whole;
  EXPECT_EQ(whole.find("not shown"), std::string::npos) << whole;
  EXPECT_EQ(whole, shown("models --wide", 80));
}

TEST_F(SlowHelpCli, ColumnsAreChosenByName) {
  const std::string text = shown("models --columns model,PARAM", 80);
  const std::string first = lines_of(text)[0];
  EXPECT_EQ(testing::words_of(first), (std::vector<std::string>{"model", "parameters"}));
  const Outcome wrong = run("bench mlp --columns model,medain");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("unknown column 'medain'"), std::string::npos) << wrong.err;
  EXPECT_NE(wrong.err.find("median ms"), std::string::npos) << wrong.err;
}

TEST_F(SlowHelpCli, TablesOfStoredRunsFitTheTerminal) {
  {
    Store store(folder_ / "ridgeline.db");
    testing::write_report_store(store);
  }
  for (const int width : {80, 120}) {
    for (const char* command :
         {"store list", "store show 1", "compare --all desk-mlp", "compare 1 2", "roofline 1",
          "roofline 1 --by layer", "roofline 1 --by step", "roofline 1 --by op --top 3"}) {
      expect_fits(shown(command, width), static_cast<std::size_t>(width), command);
    }
  }
  const std::vector<std::string> list = lines_of(shown("store list", 80));
  const std::vector<std::string> titles = testing::words_of(list[0]);
  for (const char* title : {"run", "model", "backend", "batch", "median", "status"}) {
    EXPECT_NE(std::find(titles.begin(), titles.end(), title), titles.end()) << title;
  }
  EXPECT_NE(shown("store list", 80).find("--columns"), std::string::npos);
}

TEST_F(SlowHelpCli, MeasuredTablesFitTheTerminal) {
  for (const int width : {80, 120}) {
    for (const std::string& command :
         {std::string("bench mlp,mnist_cnn --backend native,reference --batch 4 --warmup 1 "
                      "--iterations 3 --telemetry 0 --threads 1 --no-store --per-step"),
          std::string("profile mnist_cnn --batch 4 --steps 2 --no-roof --telemetry 0 --no-store"),
          std::string("profile mnist_cnn --batch 4 --steps 2 --no-roof --telemetry 0 --no-store "
                      "--by step"),
          std::string("train mlp --data synthetic:1x8x8:4:64 --epochs 1 --telemetry 0 --no-store "
                      "--schedule cosine")}) {
      expect_fits(shown(command, width), static_cast<std::size_t>(width), command);
    }
  }
}

TEST_F(SlowHelpCli, BenchTellsOfEveryFinishedConfiguration) {
  const Outcome outcome = run(
      "bench mlp --backend native,reference --batch 4,8 --warmup 1 --iterations 3 --telemetry 0 "
      "--threads 1 --no-store --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out).is_object());
  for (const char* part : {"finished 1 of 4: mlp, batch ", "finished 4 of 4: mlp, batch ",
                           "reference: median ", ", 3 iterations\n"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << '\n' << outcome.err;
  }
}

}  // namespace
}  // namespace ridgeline
