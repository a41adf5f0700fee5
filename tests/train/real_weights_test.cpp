// SqueezeNet 1.1 with weights trained on ImageNet: stored outputs, photographs, a new head; and
// Tiny-ImageNet from its folder and from a pack.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "models/model.h"
#include "support/images.h"
#include "support/npy.h"
#include "support/program.h"
#include "support/source_dir.h"
#include "support/worst_difference.h"
#include "train/match_weights.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

class SlowRealWeights : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = testing::test_data() / "squeezenet1_1";
    if (!fs::exists(weights())) {
      GTEST_SKIP() << "no SqueezeNet weights in " << folder_
                   << "; set RIDGELINE_TEST_DATA to the folder that holds them";
    }
  }
  [[nodiscard]] fs::path weights() const { return folder_ / "squeezenet1_1-imagenet.safetensors"; }

  fs::path folder_;
};

TEST_P(SlowRealWeights, StoredOutputsComeOut) {
  Graph graph;
  const ModelConfig config = default_config("squeezenet1_1");
  const ValueId image = graph.add_value("image", {Shape{1, 3, 224, 224}, DType::f32}, Role::input);
  NetworkBuilder builder(graph, false, config.init, DType::f32);
  const ValueId logits = find_model("squeezenet1_1").build(builder, image, config);
  graph.mark_output(logits);
  const auto device = make_cpu_device();
  PlanRequest request;
  request.backend = GetParam();
  Session session(*device);
  const Session::PlanId plan = session.add(plan_for(graph, request, *device));
  session.prepare();
  const WeightFile file = open_weights(weights());
  for (const WeightMatch::Pair& pair :
       match_weights(builder.parameters(), file, {.model = "squeezenet1_1"}).pairs) {
    const std::vector<float> values = pair.tensor->to_float();
    session.write(pair.parameter, std::as_bytes(std::span(values)));
    device->synchronize();
  }
  for (const char* number : {"0", "1", "2"}) {
    const fs::path set = folder_ / "test_data_set" / number;
    const std::vector<float> input = testing::read_npy(set / "input_0.npy");
    const std::vector<float> expected = testing::read_npy(set / "output_0.npy");
    session.write("image", std::as_bytes(std::span(input)));
    session.run(plan);
    device->synchronize();
    const std::vector<double> output = session.read_value(plan, logits);
    EXPECT_LT(testing::worst_difference(output, expected), 1e-3)
        << "set " << number << " on " << GetParam();
  }
}

TEST_P(SlowRealWeights, PhotographsAreRecognised) {
  if (std::string(GetParam()) == "reference") GTEST_SKIP() << "too slow on the reference";
  testing::Child child("eval squeezenet1_1 --json --batch 11 --weights " + weights().string() +
                           " --data " + (folder_ / "images").string() + " --backend " + GetParam(),
                       fs::temp_directory_path());
  const testing::Outcome outcome = child.finish();
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document.at("samples"), 33);
  EXPECT_GE(document.at("top1").get<double>(), 0.6);
  EXPECT_GE(document.at("top5").get<double>(), 0.8);
}

// Archives of photographs, unpacked for one test.
class SlowPhotographs : public ::testing::Test {
 protected:
  void SetUp() override {
    data_ = testing::test_data();
    folder_ = fs::temp_directory_path() / ("ridgeline_photos_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] bool unpack(const std::string& archive) const {
    const fs::path file = data_ / archive;
    return fs::exists(file) &&
           std::system(("tar xf '" + file.string() + "' -C '" + folder_.string() + "'").c_str()) ==
               0;
  }
  [[nodiscard]] nlohmann::json run(const std::string& arguments) const {
    const testing::Outcome outcome = testing::Child(arguments, folder_).finish();
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }

  fs::path data_, folder_;
};

TEST_F(SlowPhotographs, CatsAndDogsAreToldApartAfterFourEpochsOfANewHead) {
  const fs::path weights = data_ / "squeezenet1_1" / "squeezenet1_1-imagenet.safetensors";
  if (!fs::exists(weights) || !unpack("cats-dogs-mini.tar")) {
    GTEST_SKIP() << "no cats-dogs-mini.tar or weights; set RIDGELINE_TEST_DATA";
  }
  const nlohmann::json document =
      run("train squeezenet1_1 --data cats-dogs-mini --freeze features.* --optimizer adam "
          "--epochs 4 --batch 32 --json --weights " +
          weights.string());
  EXPECT_GE(document.at("final_test_accuracy").get<double>(), 0.9);
}

// The test accuracies in percent that the documentation shows below a command.
std::vector<double> documented_accuracies(const std::string& command) {
  const std::string text = read_text(testing::source_dir() / "docs/weights-and-checkpoints.md");
  const std::size_t begin = text.find("\n    $ ./run " + command);
  EXPECT_NE(begin, text.npos);
  std::istringstream lines(text.substr(begin, text.find("final test accuracy", begin) - begin));
  std::vector<double> shown;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = testing::words_of(line);
    if (words.size() > 4 && words[4].ends_with('%')) shown.push_back(std::stod(words[4]));
  }
  return shown;
}

TEST_F(SlowPhotographs, TheDocumentationShowsWhatItsCommandPrints) {
  const fs::path weights = data_ / "squeezenet1_1" / "squeezenet1_1-imagenet.safetensors";
  if (!fs::exists(weights) || !unpack("cats-dogs-mini.tar")) {
    GTEST_SKIP() << "no cats-dogs-mini.tar or weights; set RIDGELINE_TEST_DATA";
  }
  fs::create_symlink(weights, folder_ / "squeezenet1_1.safetensors");
  fs::create_symlink("cats-dogs-mini", folder_ / "photos");
  const std::string command =
      "train squeezenet1_1 --data photos --weights squeezenet1_1.safetensors --freeze ";
  const std::string rest = " --optimizer adam --epochs 4";
  const std::vector<double> shown = documented_accuracies(command + "'features.*'" + rest);
  const nlohmann::json epochs = run(command + "features.*" + rest + " --json").at("epochs");
  ASSERT_EQ(epochs.size(), shown.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    // Of 100 photographs; rounding differs from processor to processor.
    EXPECT_NEAR(100.0 * epochs[i].at("test_accuracy").get<double>(), shown[i], 2.0);
  }
}

TEST(SlowTrainHelp, TheFirstExampleReachesAGoodAccuracy) {
  const fs::path folder = fs::temp_directory_path();
  const std::string help = testing::Child("train --help", folder).finish().out;
  const std::size_t begin = help.find("ridgeline ", help.find("Examples:"));
  ASSERT_NE(begin, help.npos);
  const std::string example = help.substr(begin, help.find('\n', begin) - begin);
  const testing::Outcome outcome =
      testing::Child(example.substr(std::string("ridgeline ").size()) + " --json", folder).finish();
  if (outcome.code == 2) GTEST_SKIP() << outcome.err;
  EXPECT_GE(nlohmann::json::parse(outcome.out).at("final_test_accuracy").get<double>(), 0.84)
      << example;
}

TEST_F(SlowPhotographs, TinyImageNetTrainsFromFolderAndPackAlike) {
  if (!unpack("tiny-imagenet-mini.tar.xz")) {
    GTEST_SKIP() << "no tiny-imagenet-mini.tar.xz; set RIDGELINE_TEST_DATA";
  }
  (void)run("data pack tiny-imagenet-200 tiny.pack --jpeg --json");
  std::vector<nlohmann::json> losses;
  for (const char* source : {"tiny-imagenet-200", "tiny.pack"}) {
    const nlohmann::json epochs =
        run(std::string("train squeezenet1_1 --limit 250 --epochs 2 --batch 50 --json --data ") +
            source)
            .at("epochs");
    losses.push_back({epochs.at(0).at("train_loss"), epochs.at(1).at("train_loss"),
                      epochs.at(1).at("test_loss")});
  }
  EXPECT_EQ(losses[0], losses[1]);
}

INSTANTIATE_TEST_SUITE_P(Backends, SlowRealWeights,
                         ::testing::Values("reference", "native", "onednn"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ridgeline
