// Runs the program itself: bad input gets a clear message, exit code 2 and leaves nothing behind;
// machines get one JSON document; Ctrl-C ends cleanly.

#include <gtest/gtest.h>
#include <signal.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/worst_difference.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;
using testing::program;

class Cli : public testing::ProgramTest {
 protected:
  void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(arguments);
    const std::size_t files = count_files();
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : parts) {
      EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err << "lacks: " << part;
    }
    EXPECT_EQ(count_files(), files) << "something was left behind";
  }

  void write(const std::string& name, const std::string& contents) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << contents;
  }

 private:
  [[nodiscard]] std::size_t count_files() const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }
};

// A quick training on any machine.
const std::string kQuick =
    "train mlp --backend reference --threads 1 --data synthetic:1x8x8:4:240 --batch 32 ";

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string idx_images(std::uint32_t count) {
  return big_endian(0x803) + big_endian(count) + big_endian(4) + big_endian(4) +
         std::string(count * 16, '\x40');
}

std::string idx_labels(std::uint32_t count, char label = '\x01') {
  return big_endian(0x801) + big_endian(count) + std::string(count, label);
}

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  std::string source = text;
  stream.next_in = reinterpret_cast<Bytef*>(source.data());
  stream.avail_in = static_cast<uInt>(source.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST_F(Cli, HelpIsEverywhereAndHasExamples) {
  const Outcome nothing = run("");
  EXPECT_EQ(nothing.code, 0);
  EXPECT_NE(nothing.out.find("Usage: ridgeline COMMAND"), std::string::npos);
  for (const char* command :
       {"", "train", "export", "bench", "verify", "models", "backends", "env"}) {
    const Outcome outcome = run(std::string(command) + " --help");
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << command;
  }
  EXPECT_EQ(run("--version").out.rfind("ridgeline ", 0), 0U);
}

TEST_F(Cli, UnknownNamesSuggestTheNearest) {
  expect_refused("trian mlp", {"unknown command 'trian'", "'train'"});
  expect_refused("train mpl", {"unknown model 'mpl'", "'mlp'"});
  expect_refused("train mlp --bacth 3", {"unknown option '--bacth'", "'--batch'"});
  expect_refused("train mlp --backend onedn", {"unknown backend 'onedn'", "'onednn'"});
  expect_refused("bench mlp --backend reference,natve", {"unknown backend 'natve'", "'native'"});
  expect_refused("verify mlp --against refrence", {"unknown backend", "'reference'"});
  expect_refused("train mlp --data fashon-mnist", {"unknown dataset", "'fashion-mnist'"});
  expect_refused("train mlp --set hiden=3", {"no option 'hiden'", "'hidden'"});
  expect_refused("train mlp --optimizer adma", {"'adma'", "'adam'"});
  expect_refused("train mlp --precision bf61", {"'bf61'", "'bf16'"});
  expect_refused(kQuick + "--no-pass fuson", {"unknown pass 'fuson'", "'fusion'"});
  expect_refused("train mlp --device gpu", {"unknown device 'gpu'", "cpu", "cuda:0"});
  expect_refused("train mlp --device cuda:99", {"device 'cuda:99'"});
}

TEST_F(Cli, ValuesOutOfRangeAreRefused) {
  expect_refused("train", {"no model given"});
  expect_refused("train mlp --batch 0", {"--batch 0"});
  expect_refused("train mlp --batch many", {"--batch", "many"});
  expect_refused("bench mlp --data " + folder_.string() + "/none", {"none"});
  expect_refused("train mlp --precision fp16", {"--precision fp16", "fp32 and bf16 only"});
  expect_refused("train mlp --loss-scale 8", {"--loss-scale", "fp16"});
  expect_refused("train mlp --lr -0.1", {"--lr -0.1"});
  expect_refused("train mlp --weight-decay -1", {"--weight-decay -1"});
  expect_refused("train mlp --momentum 1.5", {"--momentum 1.5"});
  expect_refused("train mlp --nesterov --momentum 0", {"--momentum"});
  expect_refused("train mlp --threads -1", {"--threads -1"});
  expect_refused("train mlp --seed -1", {"--seed -1"});
  expect_refused("train mlp --limit 0", {"--limit 0"});
  expect_refused(kQuick + "--validation 240", {"240", "239"});
  expect_refused(kQuick + "--epochs 0", {"epochs 0"});
  expect_refused(kQuick + "--normalize 1,2,3", {"--normalize"});
  expect_refused(kQuick + "--normalize 0.5,0", {"deviation must be above 0"});
  expect_refused("train mlp --target-accuracy 101%", {"--target-accuracy 101%"});
  expect_refused("train mlp --precision tf32", {"fp32 and bf16 only"});
  expect_refused("train mlp --set hidden", {"NAME=VALUE"});
  expect_refused("train mlp --set hidden=0 --data synthetic:1x8x8:4:64", {"hidden"});
  expect_refused("bench mlp --image 28by28", {"--image '28by28'"});
  expect_refused("bench mlp --iterations 0", {"--iterations 0"});
  expect_refused("verify mlp --tolerance 0", {"--tolerance 0"});
  expect_refused("train mnist_cnn --backend reference --data synthetic:1x3x3:4:64", {"pool1"});
}

TEST_F(Cli, LimitAndBatchAboveTheDataTakeWhatIsThere) {
  const std::string quick = "train mlp --backend reference --data synthetic:1x8x8:4:24 --epochs 1 ";
  const Outcome limit = run(quick + "--batch 8 --limit 999 --json");
  EXPECT_EQ(limit.code, 0) << limit.err;
  EXPECT_NE(limit.err.find("--limit 999: the data has 24 samples"), std::string::npos) << limit.err;
  const Outcome batch = run(quick + "--batch 99 --json");
  EXPECT_EQ(batch.code, 0) << batch.err;
  EXPECT_NE(batch.err.find("--batch 99: there are only 24 training samples"), std::string::npos)
      << batch.err;
  EXPECT_EQ(Json::parse(batch.out)["work"]["batch"], 24);
  const Outcome eval = run("eval mlp --data synthetic:1x28x28:10:24 --batch 99 --limit 999");
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_NE(eval.err.find("--limit 999: the data has 4 samples"), std::string::npos) << eval.err;
}

TEST_F(Cli, OutputPathsAreCheckedBeforeTraining) {
  expect_refused(kQuick + "--epochs 1000000 --csv none/here.csv", {"none/here.csv"});
  expect_refused(kQuick + "--epochs 1000000 --csv .", {"folder"});
  write("plain", "a file");
  expect_refused(kQuick + "--epochs 1000000 --csv plain/x.csv", {"plain/x.csv"});
}

TEST_F(Cli, TooLittleMemoryTellsWhatFits) {
  expect_refused("bench mlp --backend reference --batch 2000000000",
                 {"needed", "available", "largest batch that fits is"});
}

TEST_F(Cli, BadIdxFilesAreRefused) {
  const std::string train = "train mlp --backend reference --batch 2 --data ";
  const auto folder_with = [&](const std::string& name, const std::string& images,
                               const std::string& labels, const std::string& suffix = "") {
    write(name + "/train-images-idx3-ubyte" + suffix, images);
    write(name + "/train-labels-idx1-ubyte" + suffix, labels);
    return train + "./" + name;
  };
  expect_refused(folder_with("short", idx_images(6).substr(0, 50), idx_labels(6)),
                 {"train-images-idx3-ubyte"});
  expect_refused(folder_with("magic", idx_labels(6), idx_labels(6)), {"train-images-idx3-ubyte"});
  expect_refused(folder_with("count", idx_images(6), idx_labels(5)), {"6", "5"});
  expect_refused(folder_with("label", idx_images(6), idx_labels(6, '\x0c')), {"12", "10"});
  const std::string packed = gzip(idx_images(600));
  expect_refused(folder_with("cut", packed.substr(0, packed.size() / 2), idx_labels(6), ".gz"),
                 {"train-images-idx3-ubyte.gz"});
  std::string corrupt = packed;
  for (std::size_t i = 12; i < 24; ++i) corrupt[i] = static_cast<char>(~corrupt[i]);
  expect_refused(folder_with("corrupt", corrupt, gzip(idx_labels(600)), ".gz"),
                 {"train-images-idx3-ubyte.gz"});
  EXPECT_EQ(run(folder_with("good", gzip(idx_images(60)), gzip(idx_labels(60)), ".gz")).code, 0);
}

TEST_F(Cli, BadCsvFilesAreRefusedWithFileAndLine) {
  const auto csv = [&](const std::string& name, const std::string& contents) {
    write(name, contents);
    return "train mlp --backend reference --batch 2 --data ./" + name;
  };
  const std::string header = "label,pixel0,pixel1,pixel2,pixel3\n";
  expect_refused(csv("ragged.csv", header + "1,0,0,0,0\n2,0,0,0\n"), {"ragged.csv", "3"});
  expect_refused(csv("word.csv", header + "1,0,0,0,0\n2,0,zero,0,0\n"), {"word.csv", "3", "zero"});
  expect_refused(csv("column.csv", "pixel0,pixel1,pixel2,pixel3\n0,0,0,0\n"),
                 {"column.csv", "label"});
  expect_refused(csv("class.csv", header + "11,0,0,0,0\n"), {"class.csv", "11"});
  expect_refused(csv("empty.csv", ""), {"empty.csv"});
}

TEST_F(Cli, TrainGivesOneJsonDocumentAndACsvFile) {
  const Outcome outcome = run(kQuick + "--epochs 3 --json --csv epochs.csv --confusion");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document.at("epochs").size(), 3U);
  for (const Json& epoch : document.at("epochs")) {
    for (const char* key : {"epoch", "train_loss", "train_accuracy", "test_accuracy", "seconds",
                            "samples_per_second", "data_wait_seconds"}) {
      EXPECT_TRUE(epoch.at(key).is_number()) << key;
    }
  }
  EXPECT_EQ(document.at("final_test_accuracy"), document.at("epochs")[2].at("test_accuracy"));
  EXPECT_FALSE(document.at("interrupted").get<bool>());
  EXPECT_TRUE(document.at("warnings").is_array());
  std::int64_t counted = 0;
  for (const Json& row : document.at("confusion").at("counts")) {
    for (const Json& count : row) counted += count.get<std::int64_t>();
  }
  EXPECT_EQ(counted, document.at("data").at("test_samples"));
  std::ifstream file(folder_ / "epochs.csv");
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  EXPECT_EQ(lines, 4);
}

TEST_F(Cli, TheSameSeedPrintsTheSameLosses) {
  const auto losses = [&](const std::string& more) {
    std::vector<double> list;
    const Json document = Json::parse(run(kQuick + "--epochs 2 --json " + more).out);
    for (const Json& epoch : document.at("epochs")) {
      list.push_back(epoch.at("train_loss").get<double>());
    }
    return list;
  };
  EXPECT_EQ(losses("--seed 7"), losses("--seed 7"));
  EXPECT_NE(losses("--seed 7"), losses("--seed 8"));
}

TEST_F(Cli, ADivergingTrainingFailsWithACompleteDocument) {
  const Outcome outcome = run(kQuick + "--lr 1e30 --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("learning rate"), std::string::npos) << outcome.err;
  EXPECT_TRUE(Json::parse(outcome.out).at("error").is_string());
}

TEST_F(Cli, FullBatchPrintsACurve) {
  const Outcome outcome =
      run(kQuick + "--full-batch --iterations 20 --eval-every 5 --lr 0.1 --validation 40 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("batch"), 200);
  ASSERT_EQ(document.at("epochs").size(), 4U);
  EXPECT_EQ(document.at("epochs")[3].at("epoch"), 20);
}

TEST_F(Cli, BenchGivesOneJsonDocumentAndRawSamples) {
  const Outcome outcome =
      run("bench mlp --backend reference --image 1x8x8 --batch 4 --warmup 1 --iterations 12 --json "
          "--csv samples.csv --per-step");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out).at("results").at(0);
  for (const char* key : {"batch", "median_ms", "ci_low_ms", "ci_high_ms", "samples_per_second",
                          "samples", "peak_memory_bytes"}) {
    EXPECT_TRUE(result.at(key).is_number()) << key;
  }
  for (const char* key : {"model", "backend", "device", "image", "precision"}) {
    EXPECT_TRUE(result.at(key).is_string()) << key;
  }
  EXPECT_LE(result.at("ci_low_ms"), result.at("median_ms"));
  EXPECT_LE(result.at("median_ms"), result.at("ci_high_ms"));
  EXPECT_EQ(result.at("samples"), 12);
  EXPECT_FALSE(result.at("steps").empty());
  std::ifstream file(folder_ / "samples.csv");
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  EXPECT_EQ(lines, 13);
}

// The means behind a norm and a convolution are zero but for rounding: no reason to call a backend
// wrong.
TEST_F(Cli, VerifyHoldsEachStepAgainstTheSameInputs) {
  const Outcome outcome =
      run("verify shufflenet_v2_x0_5 --backend native --image 3x33x33 --batch 2 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_TRUE(document.at("passed").get<bool>());
  EXPECT_FALSE(document.at("accumulate").get<bool>());
  const Json free = Json::parse(run("verify shufflenet_v2_x0_5 --backend native --image 3x33x33 "
                                    "--batch 2 --accumulate --json")
                                    .out);
  ASSERT_TRUE(free.at("accumulate").get<bool>());
  // Where errors travel, what lies behind many layers is further off; null is infinite.
  const auto largest = [](const Json& values) {
    double error = 0.0;
    for (const Json& value : values.at("values")) {
      const Json& one = value.at("max_relative_error");
      error = testing::larger_or_nan(error, one.is_null() ? 1e9 : one.get<double>());
    }
    return error;
  };
  EXPECT_GT(largest(free), largest(document));
  // Depthwise kernels leave out the products with padding.
  double least = 1.0;
  for (const Json& value : document.at("values")) {
    least = std::min(least, value.at("flop_factor").get<double>());
  }
  EXPECT_LT(least, 1.0);
  EXPECT_GT(least, 0.0);
}

// Both sides keep the convolutions' outputs to themselves: what the sums behind them are made of
// comes from a plan without fusion.
TEST_F(Cli, VerifyKnowsTheSizeOfWhatFusedKernelsKeep) {
  const Outcome outcome = run(
      "verify mobilenet_v2 --image 41x41 --batch 3 --classes 5 --backend onednn --against native");
  EXPECT_EQ(outcome.code, 0) << outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2));
}

TEST_F(Cli, VerifyComparesEveryValue) {
  const Outcome outcome =
      run("verify mlp --backend reference --against reference --image 1x8x8 --batch 4 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_TRUE(document.at("passed").get<bool>());
  EXPECT_TRUE(document.at("first_divergence").is_null());
  std::vector<std::string> names;
  for (const Json& value : document.at("values")) {
    names.push_back(value.at("name").get<std::string>());
    EXPECT_EQ(value.at("max_relative_error"), 0.0) << names.back();
  }
  for (const char* name : {"fc1.linear", "fc1.weight.grad", "fc1.weight'"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST_F(Cli, ListsAreThereForMachines) {
  const Json backends = Json::parse(run("backends --json").out).at("backends");
  ASSERT_GE(backends.size(), 3U);
  for (const Json& backend : backends) {
    EXPECT_TRUE(backend.at("name").is_string());
    EXPECT_TRUE(backend.at("device").is_string());
    EXPECT_TRUE(backend.at("available").is_boolean());
    EXPECT_TRUE(backend.at("reason").is_string());
  }
  std::int64_t mlp = 0, cnn = 0;
  const Json models = Json::parse(run("models --json").out).at("models");
  for (const Json& model : models) {
    if (model.at("name") == "mlp") mlp = model.at("parameters").get<std::int64_t>();
    if (model.at("name") == "mnist_cnn") cnn = model.at("parameters").get<std::int64_t>();
  }
  EXPECT_EQ(mlp, 7960);
  EXPECT_EQ(cnn, 53866);
  const Json env = Json::parse(run("env --json").out);
  for (const char* key : {"cpu", "memory_bytes", "os", "kernel", "compiler", "libraries"}) {
    EXPECT_TRUE(env.contains(key)) << key;
  }
}

TEST_F(Cli, DescribeTellsWorkBytesAndMemory) {
  const Outcome outcome = run("describe resnet18 --json --batch 1,4 --memory 1GiB --per-layer");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("parameters"), 11689512);
  EXPECT_EQ(document.at("forward_macs"), 1814073344);
  EXPECT_GT(document.at("forward_flops"), 2 * 1814073344LL);
  EXPECT_GT(document.at("training_flops"), document.at("forward_flops"));
  EXPECT_GT(document.at("bytes"), 0);
  EXPECT_DOUBLE_EQ(
      document.at("intensity").get<double>(),
      document.at("training_flops").get<double>() / document.at("bytes").get<double>());
  EXPECT_GE(document.at("memory").at("parameters"), 4 * 11689512);
  ASSERT_EQ(document.at("batches").size(), 2U);
  EXPECT_EQ(document.at("batches").at(1).at("forward_macs"), 4 * 1814073344LL);
  EXPECT_GE(document.at("largest_batch"), 1);
  EXPECT_LE(document.at("largest_batch_bytes"), std::int64_t{1} << 30);
  EXPECT_FALSE(document.at("layers").empty());
}

TEST_F(Cli, DescribeWritesItsFiles) {
  const Outcome outcome =
      run("describe mnist_cnn --image 40x32 --classes 7 --csv layers.csv --draw net.svg "
          "--graph net.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("image 1x40x32, 7 classes"), std::string::npos) << outcome.out;
  std::stringstream csv, drawing, step;
  csv << std::ifstream(folder_ / "layers.csv").rdbuf();
  drawing << std::ifstream(folder_ / "net.svg").rdbuf();
  EXPECT_NE(csv.str().find("\nconv1,conv2d+bias,1x8x38x30,80,"), std::string::npos) << csv.str();
  for (const char* part : {"<svg", ">conv1: conv2d 3x3<", ">8x38x30", "</svg>"}) {
    EXPECT_NE(drawing.str().find(part), std::string::npos) << part;
  }
  const auto graph = nlohmann::json::parse(std::ifstream(folder_ / "net.json"));
  EXPECT_EQ(graph.at("model"), "mnist_cnn");
  EXPECT_EQ(graph.at("values")[0].at("shape"), (std::vector<int>{1, 1, 40, 32}));
  EXPECT_EQ(graph.at("values").back().at("shape"), (std::vector<int>{1, 7}));
  ASSERT_EQ(run("describe mnist_cnn --draw step.svg --draw-view step").code, 0);
  step << std::ifstream(folder_ / "step.svg").rdbuf();
  EXPECT_NE(step.str().find("conv2d_backward_weights"), std::string::npos);
}

TEST_F(Cli, DescribeRefusesBadUse) {
  expect_refused("describe resnet81", {"did you mean 'resnet18'"});
  expect_refused("describe mlp --batch 1,x", {"--batch '1,x'", "such as 1,32,256"});
  expect_refused("describe mlp --batch 0", {"--batch '0'"});
  expect_refused("describe mlp --memory lots", {"--memory 'lots'", "8GiB"});
  expect_refused("describe mlp --precision fp16", {"fp32 and bf16 only"});
  expect_refused("describe mlp --draw-view pretty", {"--draw-view", "network, step"});
  expect_refused("describe mlp --draw missing/folder/x.svg", {"cannot be written"});
  expect_refused("describe mlp --graph missing/folder/x.json", {"cannot be written"});
  expect_refused("describe resnet18 --image 16x0", {"--image '16x0'"});
}

TEST_F(Cli, CtrlCEndsWithWhatWasReached) {
  Child child(kQuick + "--epochs 1000000 --csv epochs.csv", folder_);
  child.wait_for("\n        2 ");
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_NE(outcome.out.find("final test accuracy"), std::string::npos);
  EXPECT_NE(outcome.out.find("interrupted"), std::string::npos);
  EXPECT_TRUE(fs::exists(folder_ / "epochs.csv"));
}

TEST_F(Cli, CtrlCLeavesTheDocumentComplete) {
  Child child(kQuick + "--epochs 1000000 --print-plan --json --checkpoint run", folder_);
  child.wait_for_message("plan of an evaluation step");
  while (!fs::exists(folder_ / "run" / "LAST")) usleep(10'000);
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_TRUE(document.at("interrupted").get<bool>());
  EXPECT_FALSE(document.at("epochs").empty());
}

TEST_F(Cli, CtrlCEndsABenchmarkWithWhatItHas) {
  Child child("bench mlp --batch 8 --iterations 100000000 --json --csv steps.csv", folder_);
  child.wait_for_cpu_seconds(1.0);
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_GT(Json::parse(outcome.out).at("results").at(0).at("samples").get<int>(), 0);
  EXPECT_TRUE(fs::exists(folder_ / "steps.csv"));
}

TEST_F(Cli, AFullDiskIsAFailure) {
  const int status = std::system(("'" + program() + "' models > /dev/full 2>&1").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace ridgeline
