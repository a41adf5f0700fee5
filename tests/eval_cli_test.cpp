// ridgeline eval and infer: trained networks on data and on single images.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/images.h"
#include "support/program.h"

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
  EXPECT_NE(outcome.out.find("most often taken for"), std::string::npos);
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
           {"eval --checkpoint run --data synthetic:3x28x28:7:20", "knows 3"},
           {"eval --checkpoint run --data synthetic:1x28x28:3:20", "channels"},
           {"eval resnet18 --checkpoint run --data photos", "not of resnet18"},
           {"eval --best --weights resnet18.safetensors resnet18", "--best needs"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << arguments << '\n' << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << arguments;
  }
}

}  // namespace
}  // namespace ridgeline
