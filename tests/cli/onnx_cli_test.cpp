// Networks of ONNX files in every command that takes a model, and files that no network comes from.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "store/store.h"
#include "support/images.h"
#include "support/onnx_models.h"
#include "support/program.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::attribute;
using testing::Child;
using testing::OnnxFolder;
using testing::OnnxMaker;
using testing::Outcome;

// A small network for 1x28x28 images.
void write_network(const fs::path& path, std::int64_t width, std::int64_t classes = 10,
                   std::int64_t channels = 1) {
  OnnxMaker maker({channels, 28, 28});
  std::string value = maker.conv("image", "conv1", {width, channels, 3, 3},
                                 {attribute("strides", onnx::Dims{2, 2})}, false);
  value = maker.node("Relu", {maker.norm(value, "bn1", width)}, {}, "/relu/Relu");
  maker.classify(value, width, classes);
  maker.model().metadata["class_names"] =
      classes == 2 ? R"(["left","right"])" : std::string("not for so many");
  maker.write(path);
}

class OnnxCli : public ::testing::Test {
 protected:
  void SetUp() override {
    write_network(folder_ / "net.onnx", 4);
    fs::create_directories(folder_ / "other");
    write_network(folder_ / "other/net.onnx", 6);
  }
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_.path()).finish();
  }
  Outcome done(const std::string& arguments) const {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << '\n' << outcome.err;
    return outcome;
  }
  // One clear line and exit code 2, as for every wrong input.
  void refused(const std::string& arguments, const std::string& part) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << arguments << '\n' << outcome.err;
    EXPECT_LE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
  }
  OnnxFolder folder_;
};

TEST_F(OnnxCli, EveryCommandThatTakesAModelTakesAFile) {
  const Outcome trained = done(
      "train net.onnx --data synthetic --limit 64 --epochs 1 --batch 16 --checkpoint run "
      "--no-store");
  EXPECT_NE(trained.out.find("net.onnx (ONNX), 7 tensors loaded"), std::string::npos)
      << trained.out;
  done("bench net.onnx --batch 2 --iterations 2 --warmup 0 --backend native --no-store");
  done(
      "bench net.onnx --inference --batch 2 --iterations 2 --warmup 0 --backend native --no-store");
  done("profile net.onnx --batch 2 --no-store");
  done("verify net.onnx --batch 2");
  const Json described = Json::parse(done("describe net.onnx --json").out);
  EXPECT_EQ(described.at("model"), "net");
  EXPECT_EQ(described.at("parameters"), 4 * 9 + 2 * 4 + 4 * 10 + 10);
  EXPECT_EQ(described.at("model_hash").get<std::string>().size(), 64U);
  done("eval net.onnx --data synthetic --limit 20 --batch 4");
  done("eval --checkpoint run --data synthetic --limit 20 --batch 4");
}

TEST_F(OnnxCli, WhatAFileGivesIsWhatItsExportGives) {
  std::ofstream(folder_ / "image.png", std::ios::binary) << [] {
    const testing::Bytes bytes = testing::png(testing::picture(28, 28), 28, 28);
    return std::string(bytes.begin(), bytes.end());
  }();
  write_network(folder_ / "two.onnx", 4, 2);
  done("export two.onnx --out again.onnx");
  done("export two.onnx --out folded.onnx --fold-norms");
  const Json first = Json::parse(done("infer image.png --model two.onnx --json --logits").out);
  EXPECT_NE(first.dump().find("left"), std::string::npos) << "class names of the file";
  for (const char* file : {"again.onnx", "folded.onnx"}) {
    const Json second =
        Json::parse(done(std::string("infer image.png --json --logits --model ") + file).out);
    const auto logits = [](const Json& document) {
      return document.at("images").at(0).at("logits").get<std::vector<double>>();
    };
    ASSERT_EQ(logits(first).size(), 2U);
    EXPECT_NEAR(logits(first)[0], logits(second)[0], 1e-4) << file;
    EXPECT_NEAR(logits(first)[1], logits(second)[1], 1e-4) << file;
  }
  refused("export two.onnx --out two.safetensors --fold-norms", "--fold-norms is for .onnx files");
}

TEST_F(OnnxCli, AnotherNumberOfClassesGetsANewHead) {
  testing::write_class_folders(folder_ / "photos/train", {"apple", "pear", "plum"}, 6, 1);
  testing::write_class_folders(folder_ / "photos/test", {"apple", "pear", "plum"}, 3, 2);
  write_network(folder_ / "colour.onnx", 4, 10, 3);
  const Outcome trained =
      done("train colour.onnx --data photos --image 28x28 --epochs 1 --batch 6 --no-store");
  EXPECT_NE(trained.out.find("new head   fc.weight (3x4), fc.bias (3)"), std::string::npos)
      << trained.out;
  EXPECT_NE(trained.out.find("5 tensors loaded"), std::string::npos);
}

TEST_F(OnnxCli, FilesThatDifferAreNeverOneNetwork) {
  const std::string rest = " --batch 2 --iterations 3 --warmup 0 --backend native --store s.db";
  done("bench net.onnx" + rest);
  done("bench other/net.onnx" + rest);
  done("bench net.onnx" + rest);
  {
    Store store(folder_ / "s.db");
    const std::vector<RunRecord> runs = store.runs();
    ASSERT_EQ(runs.size(), 3U);
    EXPECT_EQ(runs[0].work.model, "net");
    EXPECT_EQ(runs[0].work.model_hash.size(), 16U);
    EXPECT_EQ(runs[0].work, runs[2].work);
    EXPECT_NE(runs[0].work.model_hash, runs[1].work.model_hash);
  }
  // A file in a filter is meant by its contents.
  const Json listed =
      Json::parse(done("store list --where model=other/net.onnx --store s.db --json").out);
  EXPECT_EQ(listed.at("runs").size(), 1U);
  const Outcome compared = run("compare model=net.onnx model=other/net.onnx --store s.db");
  EXPECT_NE((compared.out + compared.err).find("network file"), std::string::npos)
      << compared.out << compared.err;
}

TEST_F(OnnxCli, ACheckpointKnowsItsFileByItsContents) {
  done(
      "train net.onnx --data synthetic --limit 64 --epochs 1 --batch 16 --checkpoint run "
      "--no-store");
  const Outcome other =
      run("train other/net.onnx --data synthetic --limit 64 --epochs 2 --batch 16 --checkpoint run "
          "--resume --no-store");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("model file: sha256 "), std::string::npos) << other.err;
  done(
      "train net.onnx --data synthetic --limit 64 --epochs 2 --batch 16 --checkpoint run --resume "
      "--no-store");
  fs::rename(folder_ / "net.onnx", folder_ / "moved.onnx");
  refused("export --checkpoint run --out a.onnx", "give the path of that file");
  done("export moved.onnx --checkpoint run --out a.onnx");
  refused("export other/net.onnx --checkpoint run --out a.onnx", "has other contents");
}

TEST_F(OnnxCli, AFileThatIsNotSupportedIsRefusedByAllAndDescribed) {
  OnnxMaker maker({1, 28, 28});
  std::string value = maker.conv("image", "c", {4, 1, 3, 3});
  value = maker.node("Einsum", {value}, {}, "mix");
  maker.classify(maker.node("Hardmax", {value}, {}, "hard"), 4);
  maker.write(folder_ / "odd.onnx");
  for (const char* command :
       {"train odd.onnx --data synthetic", "bench odd.onnx", "profile odd.onnx", "verify odd.onnx",
        "eval odd.onnx --data synthetic", "export odd.onnx --out x.onnx"}) {
    refused(command, "odd.onnx: node 'mix' (Einsum, opset 17)");
  }
  const Outcome described = run("describe odd.onnx");
  EXPECT_EQ(described.code, 2);
  for (const char* word : {"mix", "Einsum", "hard", "Hardmax", "17", "Supported are Abs, "}) {
    EXPECT_NE(described.out.find(word), std::string::npos) << word;
  }
  const Json json = Json::parse(run("describe odd.onnx --json").out);
  EXPECT_EQ(json.at("not_supported").size(), 2U);
}

TEST_F(OnnxCli, FilesThatAreBrokenAreRefusedInOneLine) {
  std::ofstream(folder_ / "text.onnx") << "this is no network";
  refused("bench text.onnx", "text.onnx: is not an ONNX file");
  refused("bench none.onnx", "none.onnx: cannot be opened");
  const std::string bytes = read_text(folder_ / "net.onnx");
  std::ofstream(folder_ / "cut.onnx", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  refused("describe cut.onnx", "or its end is missing");
  refused("train net.onnx --data synthetic --image 14x14 --set hidden=3",
          "model net has no option 'hidden'");
  refused("bench net.onnx --image 3x28x28 --batch 2", "takes images of 1 channels, not of 3");
}

TEST_F(OnnxCli, StudiesTakeFiles) {
  std::ofstream(folder_ / "mine.toml") << R"(
name = "mine"
title = "Mine"
question = "How fast?"
[[part]]
id = "steps"
command = "bench"
models = ["net.onnx", "mnist_cnn"]
batches = [2]
backends = ["native"]
iterations = 2
warmup = 0
)";
  const Outcome planned = done("study mine.toml --dry-run");
  EXPECT_NE(planned.out.find("net"), std::string::npos) << planned.out;
}

}  // namespace
}  // namespace ridgeline
