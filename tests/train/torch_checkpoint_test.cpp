#include "train/torch_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "support/weight_files.h"
#include "train/zip.h"

namespace ridgeline {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::expect_contains;
using testing::float_bytes;
using testing::pickled_dict;
using testing::pickled_number;
using testing::pickled_tensor;
using testing::pickled_text;
using testing::PickledTensor;
using testing::refusal;
using testing::torch_legacy;
using testing::torch_zip;

using Dims = std::vector<std::int64_t>;
using Floats = std::vector<float>;

// 0, 1, 2, ... in one storage of twelve.
Bytes twelve() {
  Floats values(12);
  std::iota(values.begin(), values.end(), 0.0F);
  return float_bytes(values);
}

PickledTensor part(std::string name, std::int64_t offset, Dims dims, Dims strides) {
  return {std::move(name), "0", 12, offset, std::move(dims), std::move(strides), "FloatStorage"};
}

class TorchCheckpoint : public testing::FileTest {
 protected:
  [[nodiscard]] std::string message_of(const Bytes& bytes) const {
    const auto path = write("broken.pth", bytes);
    const std::string message = refusal([&] { (void)open_weights(path); });
    expect_contains(message, {"broken.pth"});
    return message;
  }
  [[nodiscard]] std::string message_of(const std::string& pickle) const {
    return message_of(torch_zip(pickle, {{"0", twelve()}}));
  }
};

TEST_F(TorchCheckpoint, TensorsAreViewsOnStoragesInEveryFormat) {
  const std::string pickle =
      pickled_dict({part("whole", 0, {3, 4}, {4, 1}), part("row", 4, {4}, {1}),
                    part("turned", 0, {4, 3}, {1, 4}), part("column", 1, {3}, {4}),
                    part("scalar", 7, {}, {}), part("nothing", 0, {0, 4}, {4, 1})});
  const std::vector<std::pair<std::string, Bytes>> storages = {{"0", twelve()}};
  const struct {
    const char* format;
    Bytes bytes;
  } files[] = {{"PyTorch zip", torch_zip(pickle, storages)},
               {"PyTorch zip", torch_zip(pickle, storages, true)},
               {"PyTorch before 1.6", torch_legacy(pickle, storages)}};
  for (const auto& [format, bytes] : files) {
    // The suffix says nothing.
    const WeightFile file = open_weights(write("weights.safetensors", bytes));
    EXPECT_EQ(file.format, format);
    ASSERT_EQ(file.tensors.size(), 6U);
    EXPECT_EQ(file.find("whole")->dims, (Dims{3, 4}));
    EXPECT_EQ(file.find("whole")->to_float(), (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(file.find("row")->to_float(), (Floats{4, 5, 6, 7}));
    EXPECT_EQ(file.find("turned")->dims, (Dims{4, 3}));
    EXPECT_EQ(file.find("turned")->to_float(), (Floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
    EXPECT_EQ(file.find("column")->to_float(), (Floats{1, 5, 9}));
    EXPECT_EQ(file.find("scalar")->to_float(), (Floats{7}));
    EXPECT_TRUE(file.find("nothing")->to_float().empty());
  }
}

TEST_F(TorchCheckpoint, WrappedStateDictsAreUnwrapped) {
  const PickledTensor tensor = part("a", 0, {12}, {1});
  const std::string inner = "}" + pickled_text("a") + pickled_tensor(tensor) + "s";
  // What training scripts keep beside: the options, as argparse has them.
  const std::string options = pickled_text("args") + "cargparse\nNamespace\n)\x81}" +
                              pickled_text("lr") + pickled_number(1) + "sb";
  for (const char* key : {"state_dict", "model", "model_state_dict", "net"}) {
    const std::string pickle = "\x80\x02}(" + pickled_text("epoch") + pickled_number(3) + options +
                               pickled_text(key) + inner + "u.";
    const WeightFile file = open_weights(write("w", torch_zip(pickle, {{"0", twelve()}})));
    ASSERT_EQ(file.tensors.size(), 1U);
    EXPECT_EQ(file.tensors[0].name, "a");
  }
  const std::string empty = "\x80\x02}" + pickled_text("epoch") + pickled_number(3) + "s.";
  expect_contains(message_of(empty), {"has no named tensors", "epoch"});
}

TEST_F(TorchCheckpoint, OldParametersAndPythonTwosPairsAreRead) {
  const std::string tensor = pickled_tensor(part("", 0, {12}, {1}));
  // NEWOBJ with a state of flags, in an OrderedDict made of pairs.
  const std::string pairs = "ccollections\nOrderedDict\n]](" + pickled_text("a") +
                            "ctorch.nn.parameter\nParameter\n" + tensor +
                            "\x85\x81\x88\x89N\x87"
                            "be"
                            "a\x85R.";
  const WeightFile file =
      open_weights(write("w", torch_legacy("\x80\x02" + pairs, {{"0", twelve()}})));
  ASSERT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.tensors[0].elements(), 12);
}

TEST_F(TorchCheckpoint, WhateverElseAPickleAsksForIsRefusedByName) {
  const std::string attack =
      "\x80\x02"
      "cposix\nsystem\n" +
      pickled_text("true") + "\x85R.";
  expect_contains(message_of(attack), {"asks for posix.system: refused", "only tensors"});
  expect_contains(message_of(torch_legacy(attack, {})), {"posix.system: refused"});
  // By protocol 4's way to name things.
  expect_contains(
      message_of("\x80\x04" + pickled_text("builtins") + pickled_text("eval") + "\x93."),
      {"builtins.eval: refused"});
  expect_contains(message_of("\x80\x02"
                             "ctorch.nn.modules.linear\nLinear\n)\x81."),
                  {"torch.nn.modules.linear.Linear: refused"});
  // Known names are called in the known way only.
  expect_contains(message_of("\x80\x02"
                             "ctorch\nFloatStorage\n)R."),
                  {"FloatStorage", "refused"});
  expect_contains(message_of("\x80\x02"
                             "ctorch._utils\n_rebuild_tensor_v2\n)\x81."),
                  {"refused"});
  expect_contains(message_of(std::string("\x80\x02"
                                         "ca\x01\x1B[2Jb\nsystem\n.")),
                  {"a??[2Jb.system"});
}

TEST_F(TorchCheckpoint, BrokenPicklesAreRefused) {
  expect_contains(message_of(std::string()), {"ends too early"});
  expect_contains(message_of(std::string("\x80\x09.")), {"protocol 9"});
  expect_contains(message_of(std::string("\x80\x02.")), {"missing on the stack"});
  expect_contains(message_of(std::string("\x80\x02"
                                         "0.")),
                  {"missing on the stack"});
  expect_contains(message_of(std::string("\x80\x02t.")), {"a mark is missing"});
  expect_contains(message_of(std::string("\x80\x02h\x05.")), {"5 was never remembered"});
  expect_contains(message_of(std::string("\x80\x02"
                                         "Na.")),
                  {"missing on the stack"});
  expect_contains(message_of(std::string("\x80\x02NNa.")), {"items for a list"});
  expect_contains(message_of(std::string("\x80\x02}(Nu.")), {"a key has no value"});
  expect_contains(message_of(std::string("\x80\x02N\x85Q.")), {"no storage"});
  expect_contains(message_of(std::string("\x80\x02X\xFF\xFF\xFF\x7F"
                                         "abc.")),
                  {"ends too early"});
  expect_contains(message_of(std::string("\x80\x02\xFF.")), {"instruction 0xff"});
  expect_contains(message_of(std::string("\x80\x02N.")), {"no dict of named tensors"});
}

TEST_F(TorchCheckpoint, SmallHostileFilesStayCheap) {
  // Nested without end, forwards, and a list that contains itself.
  expect_contains(message_of("\x80\x02N" + std::string(2'000'000, '\x85') + "."), {"more than"});
  expect_contains(message_of("\x80\x02N" + std::string(500'000, '\x85') + "."), {"no dict"});
  expect_contains(
      message_of("\x80\x02]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a."),
      {"no dict"});
  expect_contains(message_of("\x80\x02" + std::string(2'000'000, '(')), {"marks"});
  // An OrderedDict made again and again of the same long list.
  std::string list = "\x80\x02(";
  for (int i = 0; i < 10'000; ++i) list += "NN\x86";
  list += "l\x85q";
  list += '\0';
  std::string again = "ccollections\nOrderedDict\nq\x01";
  std::string calls;
  for (int i = 0; i < 10'000; ++i) calls += std::string("h\x01h\0R0", 6);
  expect_contains(message_of(list + again + calls + "."), {"items"});
}

TEST_F(TorchCheckpoint, TensorsBeyondTheirStorageAreRefused) {
  const auto message = [&](const PickledTensor& tensor) {
    return message_of(pickled_dict({tensor}));
  };
  expect_contains(message(part("a", 0, {13}, {1})), {"'a'", "repeats", "12"});
  expect_contains(message(part("a", 1, {12}, {1})), {"needs element 12", "has 12"});
  expect_contains(message(part("a", 0, {3}, {6})), {"needs element 12"});
  expect_contains(message(part("a", -1, {3}, {1})), {"broken offset"});
  expect_contains(message(part("a", 0, {-3}, {1})), {"broken size"});
  expect_contains(message(part("a", 0, {3}, {-1})), {"broken stride"});
  expect_contains(message(part("a", 0, {3}, {1, 1})), {"stride for each"});
  expect_contains(message(part("a", 0, {1LL << 40, 1LL << 40}, {1, 1})), {"too large"});
  expect_contains(message(part("a", 0, {1LL << 40}, {0})), {"repeats"});
  expect_contains(message(part("a", INT64_MAX, {2}, {INT64_MAX})), {"leave its storage"});
  expect_contains(message(part("a", 0, Dims(17, 1), Dims(17, 1))), {"17 dimensions"});
  PickledTensor other = part("a", 0, {3}, {1});
  other.key = "7";
  expect_contains(message(other), {"no entry 'archive/data/7'"});
  other.key = "0";
  other.storage_elements = 13;
  expect_contains(message(other), {"too few for 13 elements"});
  other.storage_elements = INT64_MAX;
  expect_contains(message(other), {"too few for"});
  other.storage_type = "QInt8Storage";
  expect_contains(message(other), {"torch.QInt8Storage: refused"});
  expect_contains(message_of(pickled_dict({part("a", 0, {3}, {1}), part("a", 0, {3}, {1})})),
                  {"'a' is there twice"});
}

TEST_F(TorchCheckpoint, ManyOverlappingCopiesAreRefused) {
  std::vector<PickledTensor> tensors;
  for (int i = 0; i < 2000; ++i) {
    PickledTensor tensor = part("t" + std::to_string(i), 0, {1000, 1000}, {1, 1000});
    tensor.storage_elements = 1'000'000;
    tensors.push_back(tensor);
  }
  expect_contains(message_of(torch_zip(pickled_dict(tensors), {{"0", Bytes(4'000'000, 0)}})),
                  {"overlap each other too often"});
}

TEST_F(TorchCheckpoint, BrokenArchivesAreRefused) {
  const Bytes good = torch_zip(pickled_dict({part("a", 0, {12}, {1})}), {{"0", twelve()}});
  expect_contains(message_of(Bytes(good.begin(), good.end() - 10)), {"truncated"});
  Bytes corrupt = good;
  // A byte of the storage, which follows its name.
  const std::string name = "archive/data/0";
  const auto at = std::search(corrupt.begin(), corrupt.end(), name.begin(), name.end());
  *(at + static_cast<std::ptrdiff_t>(name.size()) + 5) ^= 1;
  expect_contains(message_of(corrupt), {"archive/data/0", "checksum"});
  expect_contains(message_of(testing::zip_bytes({{"a.txt", bytes_of("hello"), false}})),
                  {"no data.pkl"});
  expect_contains(
      message_of(testing::zip_bytes({{"a/data.pkl", {}, false}, {"a/data.pkl", {}, false}})),
      {"two entries"});
  // A deflated bomb: 16 MB of zeros in some kilobytes.
  PickledTensor bomb = part("a", 0, {4'000'000}, {1});
  bomb.storage_elements = 4'000'000;
  expect_contains(message_of(torch_zip(pickled_dict({bomb}), {{"0", Bytes(16'000'000, 0)}}, true)),
                  {"more than 64 times"});
  // Every cut of a good file is refused, and never more than that.
  for (std::size_t size = 0; size < good.size(); size += 7) {
    (void)message_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
  }
  const Bytes legacy = torch_legacy(pickled_dict({part("a", 0, {12}, {1})}), {{"0", twelve()}});
  for (std::size_t size = 0; size < legacy.size(); size += 7) {
    (void)message_of(Bytes(legacy.begin(), legacy.begin() + static_cast<std::ptrdiff_t>(size)));
  }
}

// PyTorch's own files, written here and now.
class SlowTorchPeer : public testing::FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    if (std::system("/usr/bin/python3 -c 'import torch' >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "/usr/bin/python3 has no torch";
    }
  }
  void run(const std::string& script) const {
    std::ofstream(folder_ / "script.py") << script;
    const std::string command = "cd '" + folder_.string() + "' && /usr/bin/python3 script.py 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << script;
  }
};

TEST_F(SlowTorchPeer, EveryKindOfFileThatTorchSaveWritesIsRead) {
  run(R"(
import torch, collections
base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
state = collections.OrderedDict()
state['plain'] = base
state['turned'] = base.permute(2, 0, 1)
state['part'] = base[1, 1:]
state['half'] = (base / 7).half()
state['brain'] = (base / 7).bfloat16()
state['double'] = (base / 7).double()
state['count'] = torch.tensor(5)
state['flag'] = torch.tensor([True, False])
state['parameter'] = torch.nn.Parameter(base * 2)
state._metadata = {'': {'version': 1}}
for zipped in (True, False):
    name = 'zip' if zipped else 'legacy'
    torch.save(state, name + '.pth', _use_new_zipfile_serialization=zipped)
    torch.save({'epoch': 3, 'loss': 0.5, 'state_dict': state, 'history': [1, (2, None), 'x']},
               name + '-wrapped.pth', _use_new_zipfile_serialization=zipped)
torch.save(torch.nn.Linear(2, 3), 'module.pth')
torch.save(state, 'protocol4.pth', pickle_protocol=4)
)");
  Floats base(24);
  std::iota(base.begin(), base.end(), 0.0F);
  for (const char* name : {"zip", "legacy", "zip-wrapped", "legacy-wrapped", "protocol4"}) {
    SCOPED_TRACE(name);
    const WeightFile file = open_weights(folder_ / (std::string(name) + ".pth"));
    ASSERT_EQ(file.tensors.size(), 9U);
    EXPECT_EQ(file.find("plain")->to_float(), base);
    EXPECT_EQ(file.find("turned")->dims, (Dims{4, 2, 3}));
    const Floats turned = file.find("turned")->to_float();
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_EQ(turned[i], base[i % 6 * 4 + i / 6]) << i;
    }
    EXPECT_EQ(file.find("part")->to_float(), (Floats{16, 17, 18, 19, 20, 21, 22, 23}));
    EXPECT_EQ(file.find("parameter")->to_float()[23], 46.0F);
    for (std::size_t i = 0; i < 24; ++i) {
      EXPECT_NEAR(file.find("half")->to_float()[i], base[i] / 7.0F, 1e-3F * base[i]);
      EXPECT_NEAR(file.find("brain")->to_float()[i], base[i] / 7.0F, 1e-2F * base[i]);
      EXPECT_FLOAT_EQ(file.find("double")->to_float()[i], base[i] / 7.0F);
    }
    EXPECT_EQ(file.find("count")->type, WeightType::i64);
    EXPECT_EQ(file.find("flag")->type, WeightType::boolean);
  }
  expect_contains(refusal([&] { (void)open_weights(folder_ / "module.pth"); }),
                  {"torch.nn.modules.linear.Linear: refused"});
}

}  // namespace
}  // namespace ridgeline
