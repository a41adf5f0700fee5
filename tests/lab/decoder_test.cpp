// --decoder: which one is taken, and why another is not.

#include <gtest/gtest.h>

#include "data/image_folder.h"
#include "data/synthetic.h"
#include "lab/options.h"
#include "support/images.h"
#include "train/checkpoint.h"

namespace ridgeline {
namespace {

using namespace ridgeline::testing;

class DecoderOption : public FileTest {
 protected:
  [[nodiscard]] Dataset files() const {
    write_class_folders(folder_, {"a", "b"}, 2);
    return listed_datasets(*list_images(folder_), {16, 16}).train;
  }
};

TEST_F(DecoderOption, TheHostDecodesForTheHost) {
  const auto cpu = make_device("cpu");
  EXPECT_EQ(decoder_of("auto", files(), *cpu), Decoder::cpu);
  EXPECT_EQ(decoder_of("cpu", files(), *cpu), Decoder::cpu);
  EXPECT_NE(refusal([&] { (void)decoder_of("gpu", files(), *cpu); }).find("--decoder gpu: "),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)decoder_of("nvjpeg", files(), *cpu); }).find("--decoder nvjpeg: "),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)decoder_of("gpus", files(), *cpu); }).find("gpu"),
            std::string::npos);
}

TEST_F(DecoderOption, AGpuTakesFilesAlone) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const auto gpu = make_device("cuda:0");
  EXPECT_EQ(decoder_of("auto", files(), *gpu), Decoder::gpu);
  const Dataset pixels = make_synthetic({.count = 4, .test_count = 1}).train;
  EXPECT_EQ(decoder_of("auto", pixels, *gpu), Decoder::cpu);
  EXPECT_NE(refusal([&] { (void)decoder_of("gpu", pixels, *gpu); }).find("no image files"),
            std::string::npos);
}

// A training may go on with the other one: their pixels are the same.
TEST_F(DecoderOption, CheckpointsDoNotTellOwnDecodersApart) {
  const auto cpu = make_device("cpu");
  TrainConfig config;
  config.plan.backend = "reference";
  const Settings host = surroundings_of(config, *cpu);
  config.decoder = Decoder::gpu;
  EXPECT_EQ(surroundings_of(config, *cpu), host);
  EXPECT_EQ(host.at(std::string(kDecoderSurrounding)), kOwnPixels);
}

}  // namespace
}  // namespace ridgeline
