#include "train/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/small_disk.h"
#include "support/weight_files.h"

namespace ridgeline {
namespace {

using testing::Bytes;
using testing::expect_contains;
using testing::float_bytes;
using testing::refusal;
using testing::safetensors_bytes;

class Safetensors : public testing::FileTest {
 protected:
  void expect_refused(const std::string& header, const Bytes& data,
                      const std::vector<std::string>& parts) const {
    SCOPED_TRACE(header);
    const auto path = write("broken.safetensors", safetensors_bytes(header, data));
    std::vector<std::string> all = parts;
    all.push_back("broken.safetensors");
    expect_contains(refusal([&] { (void)open_weights(path); }), all);
  }
};

TEST_F(Safetensors, ReadsNamesShapesAndElementsOfEveryRealType) {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[4],"data_offsets":[8,16]},)"
      R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("c":{"dtype":"BF16","shape":[],"data_offsets":[16,18]},)"
      R"("d":{"dtype":"F64","shape":[1],"data_offsets":[18,26]},)"
      R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[26,26]}}   )";
  Bytes data = float_bytes({1.5F, -2.0F});
  // 1.0, the smallest subnormal, -infinity, 65504 in f16; -1.5 in bf16; 0.1 in f64.
  for (const int byte : {0x00, 0x3C, 0x01, 0x00, 0x00, 0xFC, 0xFF, 0x7B, 0xC0, 0xBF}) {
    data.push_back(static_cast<std::uint8_t>(byte));
  }
  const double tenth = 0.1;
  data.insert(data.end(), reinterpret_cast<const std::uint8_t*>(&tenth),
              reinterpret_cast<const std::uint8_t*>(&tenth) + 8);
  // The suffix says nothing.
  const WeightFile file = open_weights(write("weights.pth", safetensors_bytes(header, data)));
  EXPECT_EQ(file.format, "safetensors");
  EXPECT_EQ(file.metadata.at("format"), "pt");
  ASSERT_EQ(file.tensors.size(), 5U);
  EXPECT_EQ(file.find("a")->dims, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(file.find("a")->to_float(), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_EQ(
      file.find("b")->to_float(),
      (std::vector<float>{1.0F, 0x1p-24F, -std::numeric_limits<float>::infinity(), 65504.0F}));
  EXPECT_EQ(file.find("c")->to_float(), (std::vector<float>{-1.5F}));
  EXPECT_EQ(file.find("c")->text(), "scalar bf16");
  EXPECT_EQ(file.find("d")->to_float(), (std::vector<float>{0.1F}));
  EXPECT_TRUE(file.find("e")->to_float().empty());
  EXPECT_EQ(file.find("f"), nullptr);
}

TEST_F(Safetensors, BrokenFilesAreRefusedWithTheReason) {
  const Bytes eight(8, 0);
  const auto tensor = [](const std::string& fields) { return "{\"a\":{" + fields + "}}"; };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  EXPECT_EQ(open_weights(write("good", safetensors_bytes(tensor(good), eight))).tensors.size(), 1U);
  expect_refused(tensor(good), Bytes(7, 0), {"'a' ends at byte 8", "truncated"});
  expect_refused(tensor(good), Bytes(9, 0), {"1 bytes follow the last tensor"});
  expect_refused(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), eight,
                 {"3 f32", "needs 12 bytes", "give 8"});
  expect_refused(tensor(R"("dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8])"), eight,
                 {"F8_E4M3", "known: F64, F32"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), eight,
                 {"before it begins"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), eight, {"it needs 2"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), eight,
                 {"a number where"});
  expect_refused(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), eight, {"-2"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), eight, {"2.0"});
  expect_refused(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
                 eight, {"too large"});
  expect_refused(tensor(R"("dtype":"F32","shape":[2])"), eight, {"no data_offsets"});
  expect_refused(tensor(R"("shape":[2],"data_offsets":[0,8])"), eight, {"no dtype"});
  expect_refused(tensor(good + R"(,"dtype":"F32")"), eight, {"dtype twice"});
  expect_refused(tensor(good + R"(,"color":"red")"), eight, {"unknown field 'color'"});
  expect_refused("{\"a\":{" + good + "},\"a\":{" + good + "}}", eight, {"'a' is used twice"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"U8","shape":[5],"data_offsets":[3,8]}})",
                 eight, {"'b'", "inside the tensor"});
  expect_refused(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                 R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                 eight, {"'b'", "gap"});
  expect_refused(R"({"__metadata__":{"n":3}})", {}, {"metadata 'n'", "only text"});
  expect_refused(R"({"__metadata__":{"n":{}}})", {}, {"metadata 'n'", "only text"});
  expect_refused(R"({"a":3})", {}, {"a number where it does not belong"});
  expect_refused(R"({"a":{"dtype")", {}, {"not valid JSON"});
  expect_refused("{\"a\":" + std::string(100'000, '['), {}, {"a list where"});
}

TEST_F(Safetensors, AbsurdHeadersAreRefused) {
  Bytes huge = safetensors_bytes("{}", {});
  huge[7] = 0x7F;
  expect_contains(refusal([&] { (void)open_weights(write("x", huge)); }), {"not a weight file"});
  Bytes cut = safetensors_bytes("{}", {});
  cut[0] = 200;
  expect_contains(refusal([&] { (void)open_weights(write("x", cut)); }), {"truncated after 2"});
}

TEST_F(Safetensors, OtherFilesAreNamedForWhatTheyAre) {
  const auto message = [&](std::string_view contents) {
    const auto path = write("other", testing::bytes_of(contents));
    return refusal([&] { (void)open_weights(path); });
  };
  expect_contains(message(""), {"not a weight file", "empty"});
  expect_contains(message("version https://git-lfs.github.com/spec/v1\n"), {"LFS pointer"});
  expect_contains(message("<!DOCTYPE html>"), {"web page"});
  expect_contains(message("\x80\x02}q."), {"torch.save did not write"});
  expect_contains(refusal([&] { (void)open_weights(folder_); }), {"is a folder"});
  expect_contains(refusal([&] { (void)open_weights(folder_ / "none"); }), {"cannot be opened"});
}

TEST_F(Safetensors, WhatIsWrittenIsReadBack) {
  const Bytes data = float_bytes({1, 2, 3, 4, 5, 6});
  const auto bytes = std::as_bytes(std::span(data));
  const std::vector<WeightTensor> tensors = {{"a\"b", WeightType::f32, {2, 3}, bytes},
                                             {"n", WeightType::i64, {}, bytes.first(8)},
                                             {"none", WeightType::f32, {0}, {}}};
  write_safetensors(folder_ / "out.safetensors", tensors, {{"format", "pt"}});
  const WeightFile file = open_weights(folder_ / "out.safetensors");
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_EQ(file.find("a\"b")->to_float(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(file.find("n")->type, WeightType::i64);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  // Nothing else is left beside it.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Safetensors, AFullDiskLeavesTheOldFileUntouched) {
  const auto path = write("old.safetensors", testing::bytes_of("old"));
  const Bytes data(100'000, 1);
  const std::vector<WeightTensor> tensors = {
      {"a", WeightType::u8, {100'000}, std::as_bytes(std::span(data))}};
  try {
    const testing::SmallDisk disk(50'000);
    write_safetensors(path, tensors);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    expect_contains(error.what(), {"old.safetensors", "cannot be written"});
  }
  std::ifstream old(path);
  std::string text;
  old >> text;
  EXPECT_EQ(text, "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Safetensors, AFolderThatIsNotThereIsAClearError) {
  try {
    write_safetensors(folder_ / "none" / "x.safetensors", {});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    expect_contains(error.what(), {"none/x.safetensors", "No such file"});
  }
}

TEST(SafetensorsData, SqueezeNetsRealFileIsRead) {
  const char* data = std::getenv("RIDGELINE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "RIDGELINE_TEST_DATA is not set";
  const auto path =
      std::filesystem::path(data) / "squeezenet1_1" / "squeezenet1_1-imagenet.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const WeightFile file = open_weights(path);
  EXPECT_EQ(file.tensors.size(), 52U);
  const WeightTensor* first = file.find("features.0.weight");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->text(), "64x3x3x3 f32");
  std::int64_t parameters = 0;
  for (const WeightTensor& tensor : file.tensors) parameters += tensor.elements();
  EXPECT_EQ(parameters, 1'235'496);
}

}  // namespace
}  // namespace ridgeline
