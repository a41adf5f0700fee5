// ridgeline eval and infer: trained networks on data and on single images.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "support/images.h"
#include "support/npy.h"
#include "support/program.h"
#include "support/worst_difference.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;

class EvalCli : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("ridgeline_eval_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    testing::write_class_folders(folder_ / "photos" / "train", {"apple", "pear", "plum"}, 6, 1);
    testing::write_class_folders(folder_ / "photos" / "test", {"apple", "pear", "plum"}, 3, 2);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_).finish();
  }
  [[nodiscard]] Outcome train() const {
    return run(
        "train mnist_cnn --data photos --image 28x28 --epochs 2 --batch 6 --checkpoint run --json");
  }

  fs::path folder_;
};

TEST_F(EvalCli, ACheckpointGivesWhatTrainingMeasured) {
  const Outcome trained = train();
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const char* batch : {"1", "4", "64"}) {
    const Outcome outcome = run(std::string("eval --checkpoint run --data photos --json --batch ") +
                                batch + " --per-class");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json document = Json::parse(outcome.out);
    EXPECT_EQ(document.at("samples"), 9);
    EXPECT_DOUBLE_EQ(document.at("top1").get<double>(),
                     Json::parse(trained.out).at("final_test_accuracy").get<double>());
    EXPECT_EQ(document.at("confusion").at("classes").at(1).at("name"), "pear");
    EXPECT_EQ(document.at("top5"), 1.0);
  }
}

TEST_F(EvalCli, TablesTellEachClass) {
  ASSERT_EQ(train().code, 0);
  const Outcome outcome =
      run("eval --checkpoint run --best --data photos --part train --per-class --confusion");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("18 in "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("2 plum"), std::string::npos);
  EXPECT_NE(outcome.out.find("most often confused with"), std::string::npos);
}

TEST_F(EvalCli, InferNamesTheClasses) {
  ASSERT_EQ(train().code, 0);
  testing::write_file(folder_ / "one.jpg", testing::jpeg(testing::picture(50, 40), 50, 40));
  testing::write_file(folder_ / "two.png", testing::png(testing::picture(31, 64), 31, 64));
  const Outcome outcome = run("infer one.jpg two.png --checkpoint run --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json images = Json::parse(outcome.out).at("images");
  ASSERT_EQ(images.size(), 2U);
  for (const Json& image : images) {
    ASSERT_EQ(image.at("top").size(), 3U);  // as many as there are classes
    double sum = 0.0;
    for (const Json& guess : image.at("top")) sum += guess.at("probability").get<double>();
    EXPECT_NEAR(sum, 1.0, 1e-9);
    EXPECT_GE(image.at("top").at(0).at("probability"), image.at("top").at(1).at("probability"));
  }
  const Outcome text = run("infer one.jpg --checkpoint run --top 1");
  EXPECT_EQ(text.out.substr(0, 8), "one.jpg\n");
}

TEST_F(EvalCli, BadInputIsRefused) {
  ASSERT_EQ(train().code, 0);
  testing::write_file(folder_ / "broken.jpg", {0xFF, 0xD8, 0xFF, 0x00});
  ASSERT_EQ(run("export resnet18 --classes 3 --out resnet18.safetensors").code, 0);
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"infer --checkpoint run", "no image given"},
           {"infer broken.jpg --checkpoint run", "broken.jpg"},
           {"infer nowhere.jpg --checkpoint run", "nowhere.jpg"},
           {"eval --checkpoint nowhere --data photos", "nowhere"},
           {"eval resnet34 --weights resnet18.safetensors --data photos", "resnet18"},
           {"eval --checkpoint run --data synthetic:3x28x28:7:20", "the network has 3"},
           {"eval --checkpoint run --data synthetic:1x28x28:3:20", "channels"},
           {"eval resnet18 --checkpoint run --data photos", "not of resnet18"},
           {"eval --best --weights resnet18.safetensors resnet18", "--best needs"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << '\n' << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << arguments;
  }
}

// A .npy file of version 1: float32, row-major.
void write_npy(const fs::path& path, const std::string& shape, const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST_F(EvalCli, InferTakesTensorsAndGivesRawOutputs) {
  ASSERT_EQ(train().code, 0);
  const std::vector<float> one(3 * 28 * 28, 0.25F), two(3 * 28 * 28, -1.0F);
  std::vector<float> both = one;
  both.insert(both.end(), two.begin(), two.end());
  write_npy(folder_ / "one.npy", "(3, 28, 28)", one);
  write_npy(folder_ / "both.npy", "(2, 3, 28, 28)", both);
  const Outcome outcome = run("infer one.npy both.npy --checkpoint run --logits --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json images = Json::parse(outcome.out).at("images");
  ASSERT_EQ(images.size(), 3U);
  EXPECT_EQ(images[0].at("logits").size(), 3U);
  EXPECT_EQ(images[0].at("logits"), images[1].at("logits"));
  EXPECT_NE(images[0].at("logits"), images[2].at("logits"));
  EXPECT_EQ(images[2].at("image"), "both.npy[1]");
  const Outcome text = run("infer one.npy --checkpoint run --logits");
  EXPECT_NE(text.out.find("  2  plum\n"), std::string::npos) << text.out;
  write_npy(folder_ / "small.npy", "(3, 2, 2)", std::vector<float>(12));
  write_npy(folder_ / "short.npy", "(3, 28, 28)", std::vector<float>(12));
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"infer small.npy --checkpoint run", "shape 3x2x2; the network takes 3x28x28"},
           {"infer short.npy --checkpoint run", "12 numbers"},
           {"infer one.npy photos/test/pear/0.jpg --checkpoint run", "cannot be mixed"}}) {
    const Outcome refused = run(arguments);
    EXPECT_EQ(refused.code, 2) << arguments;
    EXPECT_NE(refused.err.find(message), std::string::npos) << refused.err;
  }
}

// The inputs and outputs that the ONNX model zoo publishes.
TEST_F(EvalCli, RawOutputsAreThoseThatWerePublished) {
  const fs::path data = testing::test_data() / "squeezenet1_1";
  if (!fs::is_directory(data)) GTEST_SKIP() << "no squeezenet1_1 in RIDGELINE_TEST_DATA";
  fs::path weights;
  for (const auto& entry : fs::directory_iterator(data)) {
    if (entry.path().extension() == ".safetensors") weights = entry.path();
  }
  const fs::path set = data / "test_data_set" / "0";
  const Outcome outcome =
      run("infer " + (set / "input_0.npy").string() + " --model squeezenet1_1 --weights " +
          weights.string() + " --logits --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto logits =
      Json::parse(outcome.out).at("images").at(0).at("logits").get<std::vector<double>>();
  EXPECT_LT(testing::worst_difference(logits, testing::read_npy(set / "output_0.npy")), 1e-3);
}

TEST_F(EvalCli, ExportKeepsTheNamesOfTheClasses) {
  ASSERT_EQ(train().code, 0);
  ASSERT_EQ(run("export --checkpoint run --out w.safetensors").code, 0);
  const Outcome outcome =
      run("infer photos/test/pear/0.jpg --model mnist_cnn --image 3x28x28 --weights w.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("  2  plum"), std::string::npos) << outcome.out;
}

TEST_F(EvalCli, DescribeListsTheTensorsOfAWeightFile) {
  ASSERT_EQ(run("export resnet18 --classes 7 --out r.safetensors").code, 0);
  const Outcome text = run("describe r.safetensors");
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"safetensors, 122 tensors", "64x3x7x7", "fits resnet18"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  }
  const Json document = Json::parse(run("describe r.safetensors --json").out);
  EXPECT_EQ(document.at("models"), Json::array({"resnet18"}));
  EXPECT_EQ(document.at("tensors").size(), 122U);
}

TEST_F(EvalCli, ANetworkOfMoreClassesThanTheDataIsTold) {
  const Outcome outcome = run("eval mnist_cnn --classes 1000 --data photos --image 28x28");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("the network has 1000 classes, the data 3"), std::string::npos)
      << outcome.err;
}

TEST_F(EvalCli, WeightsThatAreNotFiniteAreRefused) {
  ASSERT_EQ(run("export mlp --classes 2 --out w.safetensors").code, 0);
  std::string bytes = read_text(folder_ / "w.safetensors");
  bytes.replace(bytes.size() - 4, 4, std::string("\x00\x00\xc0\x7f", 4));  // NaN
  std::ofstream(folder_ / "w.safetensors", std::ios::binary) << bytes;
  for (const char* command :
       {"infer photos/test/pear/0.jpg --model mlp --image 1x28x28 --weights w.safetensors",
        "eval mlp --weights w.safetensors --data synthetic:1x28x28:2:12"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << command;
    EXPECT_NE(outcome.err.find("not finite"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace ridgeline
