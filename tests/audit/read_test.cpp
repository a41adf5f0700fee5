// Files of any form are read, and hostile ones refused with one clear line.

#include "audit/read/read.h"

#include <gtest/gtest.h>

#include <fstream>

#include "audit/table.h"
#include "base/error.h"
#include "support/audit_files.h"

namespace ridgeline::audit {
namespace {

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  text.reserve(part.size() * count);
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

struct HostileFile {
  const char* name;
  std::string text;
  const char* words;  // that the message has
};

std::vector<HostileFile> hostile_files() {
  using namespace std::string_literals;
  return {
      {"empty", "", "is empty"},
      {"blank", " \n\r\n\t\n", "is empty"},
      {"comments", "# a\n# b\n", "comments alone"},
      {"header", "model,batch\n", "no rows"},
      {"formula", "model,time (s)\nresnet18,=A1/B2\n", "line 2, time (s): holds a formula"},
      {"command", "model,time\nresnet18,\"@SUM(1+9)*cmd|' /C calc'!A0\"\n", "formula"},
      {"header_formula", "=1+1,time\n1,2\n", "formula"},
      {"open_quote", "model,time\n\"resnet18,1\nresnet50,2\n", "line 2: a quote is opened"},
      {"after_quote", "model,time\n\"resnet18\"x,1\n", "behind a closing quote"},
      {"nul", "model,time\nresnet18\0,1\n"s, "line 2: holds a NUL"},
      {"binary",
       "\x7f"
       "ELF\x02\x01\x01\0\0\0"s,
       "NUL"},
      {"utf16", "\xFF\xFEm\0o\0"s, "UTF-16"},
      {"utf16_big", "\xFE\xFF\0m\0o"s, "UTF-16"},
      {"latin1",
       "model,temp \xB0"
       "C\nresnet18,70\n",
       "0xb0 is no UTF-8"},
      {"columns", repeated("a,", 10'000'000), "more than 10,000 columns"},
      {"sparse", repeated("a,", 9'999) + "b\n" + repeated("1\n", 3'000), "columns empty"},
      {"cells", "a,b\n1,2,3\n", "line 2: has more cells"},
      {"long_cell", "a,b\n" + std::string(100'000, 'x') + ",2\n", "longer than"},
      {"long_quoted", "a,b\n\"" + std::string(100'000, 'x') + "\",2\n", "longer than"},
      {"nothing_known", "colour,taste\nred,sweet\n", "none of its columns"},
      {"empty_cells", "model,time\n,\n,\n", "all cells are empty"},
      {"broken_json", "{\"model\": \"resnet18\",\n", "is no JSON"},
      {"json_numbers", "[1, 2, 3]", "expected an object"},
      {"json_nan", "{\"time\": NaN}\n", "is no JSON"},
      {"deep_json", repeated("[", 200'000), "is no JSON"},
      {"json_columns",
       "{" +
           [] {
             std::string text;
             for (int i = 0; i < 20'000; ++i) text += "\"c" + std::to_string(i) + "\":1,";
             return text;
           }() +
           "\"z\":1}",
       "more than 10,000 columns"},
      {"trace", "{\"traceEvents\": []}", "without steps"},
  };
}

TEST(AuditHostile, FilesAreRefusedWithOneClearLine) {
  for (const HostileFile& file : hostile_files()) {
    try {
      (void)interpret(parse_table(file.text, "results.csv"), {});
      ADD_FAILURE() << file.name << " was accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.exit_code(), 2) << file.name;
      EXPECT_EQ(message.rfind("results.csv", 0), 0U) << file.name << ": " << message;
      EXPECT_NE(message.find(file.words), std::string::npos) << file.name << ": " << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << file.name;
      EXPECT_LT(message.size(), 250U) << file.name;
    }
  }
}

TEST(AuditHostile, MutatedFilesNeverCrash) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::string text =
        seed % 2 == 0 ? testing::healthy_summary(seed) : testing::healthy_epochs(seed);
    std::uint64_t state = seed * 0x9E3779B97F4A7C15ULL;
    for (int i = 0; i < 20; ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      constexpr std::string_view kBytes = ",;\"\n\t=#-.xe\r{}9";
      text[(state >> 20U) % text.size()] = kBytes[(state >> 50U) % kBytes.size()];
    }
    try {
      (void)interpret(parse_table(text, "mutated"), {});
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
    }
  }
}

const Column& column(const Table& table, Role role) {
  const Column* found = table.find(role);
  EXPECT_NE(found, nullptr) << info_of(role).name;
  static const Column kNone;
  return found == nullptr ? kNone : *found;
}

Table read(const std::string& text, const std::vector<std::string>& maps = {}) {
  std::vector<ColumnRule> rules;
  for (const std::string& map : maps) rules.push_back(parse_rule(map));
  return interpret(parse_table(text, "test"), rules);
}

TEST(AuditRead, QuotesCommentsMarksAndLineEnds) {
  const Table table = read(
      "\xEF\xBB\xBF# from a paper\r\nmodel,\"batch time (ms)\"\r\n\r\n\"a \"\"b\"\", c\",12.5\r\n"
      "resnet18,\"1,107\"");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.word(Role::model, 0), "a \"b\", c");
  EXPECT_DOUBLE_EQ(column(table, Role::batch_time).value(0), 0.0125);
  EXPECT_DOUBLE_EQ(column(table, Role::batch_time).value(1), 1.107);
  EXPECT_EQ(table.lines, (std::vector<std::int64_t>{4, 5}));
}

TEST(AuditRead, OtherSeparatorsAndDecimalCommas) {
  for (const char* text : {"model;time_ms\nresnet18;12,5\n", "model\ttime_ms\nresnet18\t12,5\n",
                           "model|time_ms\nresnet18|12,5\n"}) {
    EXPECT_DOUBLE_EQ(column(read(text), Role::time).value(0), 0.0125) << text;
  }
}

TEST(AuditRead, JsonInAllItsForms) {
  for (const char* text :
       {"{\"model\":\"resnet18\",\"img/s\":650}\n{\"model\":\"resnet50\",\"img/s\":117}\n",
        "[{\"model\":\"resnet18\",\"img/s\":650},{\"model\":\"resnet50\",\"img/s\":117}]",
        "{\"name\":\"x\",\"results\":[{\"model\":\"resnet18\",\"img/s\":650},"
        "{\"model\":\"resnet50\",\"img/s\":117}]}"}) {
    const Table table = read(text);
    ASSERT_EQ(table.rows(), 2U) << text;
    EXPECT_DOUBLE_EQ(column(table, Role::throughput).value(1), 117.0) << text;
    EXPECT_EQ(table.word(Role::model, 1), "resnet50") << text;
  }
}

TEST(AuditRead, QuantitiesWithUnitsInTheirCells) {
  const Table table = read("model,training time,memory\na,1 h 15 min,31.8 KB\nb,2 h,1.5 GiB\n");
  EXPECT_DOUBLE_EQ(column(table, Role::total_time).value(0), 4500.0);
  EXPECT_DOUBLE_EQ(column(table, Role::total_time).value(1), 7200.0);
  EXPECT_DOUBLE_EQ(column(table, Role::memory).value(0), 31800.0);
  EXPECT_DOUBLE_EQ(column(table, Role::memory).value(1), 1.5 * 1073741824.0);
}

TEST(AuditColumns, AreRecognisedByNameAndUnit) {
  const std::pair<const char*, Role> cases[] = {
      {"Batch size", Role::batch},
      {"batch_time_ms", Role::batch_time},
      {"Epoch time (s)", Role::epoch_time},
      {"Training time [h]", Role::total_time},
      {"Throughput", Role::throughput},
      {"images_per_sec", Role::throughput},
      {"img/s", Role::throughput},
      {"img_s", Role::throughput},
      {"achieved_gflops_s", Role::flop_rate},
      {"samples_per_second", Role::throughput},
      {"Params (M)", Role::parameters},
      {"FLOPs (G)", Role::flops},
      {"GMACs", Role::macs},
      {"Achieved GFLOP/s", Role::flop_rate},
      {"peak TFLOP/s", Role::peak_rate},
      {"GPU Util %", Role::utilisation},
      {"Peak VRAM (MB)", Role::memory},
      {"speed-up", Role::speedup},
      {"Acc@1", Role::accuracy},
      {"test_accuracy", Role::accuracy},
      {"train_accuracy", Role::train_accuracy},
      {"final test accuracy (%)", Role::final_accuracy},
      {"Precision", Role::precision},
      {"env", Role::device},
      {"epoch", Role::epoch},
      {"iteration", Role::iteration},
      {"num_classes", Role::classes},
      {"arithmetic intensity (FLOP/byte)", Role::intensity},
      {"efficiency (%)", Role::efficiency},
      {"std (ms)", Role::deviation},
      {"wall_seconds", Role::batch_time},
      {"forward_seconds", Role::none},
      {"first_epoch", Role::none},
      {"min (ms)", Role::none},
      {"max Acc@1 (%)", Role::best_accuracy},
      {"kernel share (%)", Role::none},
      {"throughput notes", Role::none},
      {"seed", Role::seed},
      {"timestamp", Role::timestamp},
  };
  for (const auto& [title, role] : cases) {
    EXPECT_EQ(info_of(role_of_title(read_title(title))).name, info_of(role).name) << title;
  }
}

TEST(AuditColumns, AreRecognisedByContent) {
  const Table table = read("a,b,c\nresnet18,fp16,T4\nResNet-50,bf16,A100\n");
  EXPECT_EQ(table.columns[0].role, Role::model);
  EXPECT_EQ(table.columns[1].role, Role::precision);
  EXPECT_EQ(table.columns[2].role, Role::device);
}

TEST(AuditColumns, TheUserHasTheLastWord) {
  const Table table = read("net,t\nresnet18,12.5\n", {"net=model", "T=batch-time:ms"});
  EXPECT_DOUBLE_EQ(column(table, Role::batch_time).value(0), 0.0125);
  EXPECT_EQ(column(table, Role::batch_time).why, "--map");
  EXPECT_THROW((void)read("net,t\nresnet18,1\n", {"nett=model"}), Error);
  for (const char* rule : {"t", "t=", "=time", "t=tiem", "t=time:parsec"}) {
    EXPECT_THROW((void)parse_rule(rule), Error) << rule;
  }
}

TEST(AuditColumns, WideTablesBecomeLong) {
  const Table table = read("model,T4 (img/s),i9 CPU (img/s)\nresnet18,650,10\nresnet50,117,\n");
  ASSERT_EQ(table.rows(), 3U);
  EXPECT_EQ(table.word(Role::device, 1), "i9 cpu");
  EXPECT_DOUBLE_EQ(column(table, Role::throughput).value(1), 10.0);
  EXPECT_EQ(table.origins, (std::vector<std::size_t>{0, 0, 1}));
}

TEST(AuditColumns, WideTablesMayDifferByDeviceBatchAndPrecisionAtOnce) {
  const Table table = read(
      "model,T4 b32 fp32 (ms),T4 b64 fp32 (ms),T4 b32 fp16 (ms),CPU b32 fp32 (s),CPU b32 fp32 std\n"
      "resnet18,100,190,50,1.5,0.1\n");
  ASSERT_EQ(table.rows(), 4U);
  EXPECT_EQ(table.word(Role::device, 0), "t4");
  EXPECT_EQ(table.number(Role::batch, 1), 64.0);
  EXPECT_EQ(table.word(Role::precision, 2), "fp16");
  EXPECT_EQ(table.word(Role::device, 3), "cpu");
  // Each column has its own unit, and a deviation is that of its column alone.
  EXPECT_DOUBLE_EQ(table.number(Role::time, 2).value_or(0.0), 0.05);
  EXPECT_DOUBLE_EQ(table.number(Role::time, 3).value_or(0.0), 1.5);
  EXPECT_FALSE(table.number(Role::deviation, 0).has_value());
  EXPECT_TRUE(table.number(Role::deviation, 3).has_value());
}

TEST(AuditColumns, WideTablesWhoseColumnsDifferBySomethingElseStayAsTheyAre) {
  const Table table =
      read("operation,a on H200 host (ms),b on H200 host (ms),c on CPU (ms)\nmatmul,1,2,3\n");
  EXPECT_EQ(table.rows(), 1U);
  EXPECT_EQ(table.all(Role::time).size(), 3U);
}

TEST(AuditColumns, TablesWithARowForEachMeasureAreTurned) {
  const Table table = read(
      "metric,Numba CPU,PyTorch CUDA\nthroughput (img/s),30501,6948\nepoch time (s),1.9,8.6\n");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.word(Role::backend, 1), "PyTorch CUDA");
  EXPECT_DOUBLE_EQ(column(table, Role::throughput).value(1), 6948.0);
}

}  // namespace
}  // namespace ridgeline::audit
