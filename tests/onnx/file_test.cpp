// Reading and writing ONNX files: everything that protobuf allows and nothing outside the folder.

#include "onnx/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/error.h"
#include "base/text_file.h"
#include "support/onnx_models.h"

namespace ridgeline::onnx {
namespace {

namespace fs = std::filesystem;
using ridgeline::testing::attribute;
using ridgeline::testing::model_with_tensor;
using ridgeline::testing::OnnxFolder;
using ridgeline::testing::OnnxMaker;
using ridgeline::testing::proto_bytes;
using ridgeline::testing::proto_number;

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string message_of(const fs::path& path) {
  try {
    (void)read_model(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "nothing is wrong";
}

std::string floats(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// "w" of four floats, in raw_data.
const std::string kPlain = proto_number(1, 4) + proto_number(2, 1);

TEST(OnnxFile, WhatIsWrittenIsReadAgain) {
  const OnnxFolder folder;
  OnnxMaker maker({3, 8, 8});
  maker.model().metadata["class_names"] = "[\"a\"]";
  const std::string value =
      maker.conv("image", "c", {4, 3, 3, 3}, {attribute("pads", Dims{1, 1, 1, 1})});
  maker.classify(maker.node("LeakyRelu", {value}, {attribute("alpha", 0.2)}), 4);
  const Model model = read_model(maker.write(folder / "a.onnx"));
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.metadata.at("class_names"), "[\"a\"]");
  ASSERT_EQ(model.nodes.size(), 5U);
  EXPECT_EQ(model.nodes[0].integers("pads", {}), (Dims{1, 1, 1, 1}));
  EXPECT_EQ(model.nodes[1].real("alpha", 0.0), 0.2);  // not the float next to it
  EXPECT_EQ(model.nodes[4].integer("transB", 0), 1);
  EXPECT_EQ(model.constants[0].dims, (Dims{4, 3, 3, 3}));
  EXPECT_EQ(model.constants[0].numbers(), maker.model().constants[0].numbers());
  EXPECT_FALSE(model.inputs[0].dims[0].has_value());
  EXPECT_EQ(model.inputs[0].dims[2], 8);
}

TEST(OnnxFile, WeightsBesideTheFileAreReadAgainAndCountInTheHash) {
  const OnnxFolder folder;
  OnnxMaker maker({3, 8, 8});
  maker.classify(maker.conv("image", "c", {4, 3, 3, 3}), 4);
  write_model(maker.model(), folder / "a.onnx", 16);
  ASSERT_TRUE(fs::exists(folder / "a.onnx.data"));
  const Model model = read_model(folder / "a.onnx");
  for (std::size_t i = 0; i < model.constants.size(); ++i) {
    EXPECT_EQ(model.constants[i].numbers(), maker.model().constants[i].numbers());
  }
  std::fstream data(folder / "a.onnx.data", std::ios::binary | std::ios::in | std::ios::out);
  data.seekp(5);
  data.put('\1');
  data.close();
  EXPECT_NE(read_model(folder / "a.onnx").hash, model.hash);
}

TEST(OnnxFile, ElementsMayStandInFieldsOfTheirType) {
  const OnnxFolder folder;
  put(folder / "f", model_with_tensor(kPlain + proto_bytes(4, floats({1, 2, 3, -4}))));
  EXPECT_EQ(read_model(folder / "f").constants[0].numbers(), (std::vector<double>{1, 2, 3, -4}));
  // Half precision: the bits, in int32_data.
  const std::string halves = proto_number(5, 0x3C00) + proto_number(5, 0xC000);
  put(folder / "h", model_with_tensor(proto_number(1, 2) + proto_number(2, 10) + halves));
  EXPECT_EQ(read_model(folder / "h").constants[0].numbers(), (std::vector<double>{1, -2}));
  const std::string wholes = proto_number(7, 7) + proto_number(7, static_cast<std::uint64_t>(-1));
  put(folder / "i", model_with_tensor(proto_number(1, 2) + proto_number(2, 7) + wholes));
  EXPECT_EQ(read_model(folder / "i").constants[0].integers(), (Dims{7, -1}));
}

TEST(OnnxFile, EveryTruncationIsRefusedOrRead) {
  const OnnxFolder folder;
  OnnxMaker maker({3, 4, 4});
  maker.classify(maker.conv("image", "c", {2, 3, 1, 1}), 2);
  const fs::path whole = maker.write(folder / "a.onnx");
  const std::string bytes = read_text(whole);
  int refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    put(folder / "cut.onnx", bytes.substr(0, size));
    refused += message_of(folder / "cut.onnx") != "nothing is wrong" ? 1 : 0;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size() * 9 / 10));
}

TEST(OnnxFile, TensorsThatLieAreRefused) {
  const OnnxFolder folder;
  const auto message = [&](const std::string& fields) {
    put(folder / "t.onnx", model_with_tensor(fields));
    return message_of(folder / "t.onnx");
  };
  EXPECT_NE(message(kPlain + proto_bytes(9, "1234")).find("has 4 bytes where 16 are needed"),
            std::string::npos);
  const auto huge =
      proto_number(1, std::uint64_t{1} << 40) + proto_number(1, std::uint64_t{1} << 40);
  EXPECT_NE(message(huge + proto_number(2, 1)).find("has dimensions 1099511627776x"),
            std::string::npos);
  EXPECT_NE(message(proto_number(1, static_cast<std::uint64_t>(-4)) + proto_number(2, 1))
                .find("has dimensions -4"),
            std::string::npos);
}

class OnnxExternal : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "models");
    put(folder_ / "outside.bin", floats({1, 2, 3, 4}));
    put(folder_ / "models/inside.bin", floats({5, 6, 7, 8, 9}));
  }
  std::string message(const std::string& location, const std::string& offset = "0") {
    const auto entry = [](const char* key, const std::string& value) {
      return proto_bytes(13, proto_bytes(1, key) + proto_bytes(2, value));
    };
    put(folder_ / "models/m.onnx",
        model_with_tensor(kPlain + entry("location", location) + entry("offset", offset) +
                          entry("length", "16") + proto_number(14, 1)));
    return message_of(folder_ / "models/m.onnx");
  }
  OnnxFolder folder_;
};

TEST_F(OnnxExternal, DataInTheModelsFolderIsRead) {
  EXPECT_EQ(message("inside.bin", "4"), "nothing is wrong");
  EXPECT_EQ(read_model(folder_ / "models/m.onnx").constants[0].numbers(),
            (std::vector<double>{6, 7, 8, 9}));
}

TEST_F(OnnxExternal, NothingOutsideTheFolderIsRead) {
  const char* refused = "only files in the model's folder are read";
  EXPECT_NE(message("../outside.bin").find(refused), std::string::npos);
  EXPECT_NE(message("sub/../../outside.bin").find(refused), std::string::npos);
  EXPECT_NE(message((folder_ / "outside.bin").string()).find(refused), std::string::npos);
  EXPECT_NE(message("").find(refused), std::string::npos);
  fs::create_symlink(folder_ / "outside.bin", folder_ / "models/link.bin");
  EXPECT_NE(message("link.bin").find(refused), std::string::npos);
  fs::create_directory_symlink(folder_.path(), folder_ / "models/up");
  EXPECT_NE(message("up/outside.bin").find(refused), std::string::npos);
}

TEST_F(OnnxExternal, PlacesBeyondTheDataAreRefused) {
  EXPECT_NE(message("inside.bin", "8").find("needs 16 bytes at 8"), std::string::npos);
  EXPECT_NE(message("inside.bin", "18446744073709551615").find("needs 16 bytes"),
            std::string::npos);
  EXPECT_NE(message("inside.bin", "-1").find("is no place in a file"), std::string::npos);
  EXPECT_NE(message("nothing.bin").find("cannot be read"), std::string::npos);
}

TEST(OnnxFile, OtherFilesAreRefusedByName) {
  const OnnxFolder folder;
  put(folder / "text.onnx", "hello, this is no protobuf");
  EXPECT_NE(message_of(folder / "text.onnx").find("text.onnx: "), std::string::npos);
  put(folder / "empty.onnx", "");
  EXPECT_NE(message_of(folder / "empty.onnx").find("it has no graph"), std::string::npos);
  EXPECT_NE(message_of(folder / "none.onnx").find("cannot be opened"), std::string::npos);
  EXPECT_NE(message_of(folder.path()).find("is a folder"), std::string::npos);
  // No process writes to it: reading it would wait for ever.
  ASSERT_EQ(mkfifo((folder / "pipe.onnx").c_str(), 0600), 0);
  EXPECT_NE(message_of(folder / "pipe.onnx").find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace ridgeline::onnx
