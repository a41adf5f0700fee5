#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text_file.h"
#include "data/synthetic.h"
#include "inspect/network_document.h"
#include "peers/parity.h"
#include "peers/peer.h"
#include "support/data_files.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

::testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "'" << part << "' is missing in: " << text;
}

TEST(PeerNames, TakeOptionsBehindAPlus) {
  const PeerName name = parse_peer("torch-cuda+amp+channels_last");
  EXPECT_EQ(name.backend(), "torch-cuda");
  EXPECT_EQ(name.text(), "torch-cuda+channels_last+amp");
  EXPECT_EQ(name.options, (std::vector<std::string>{"channels_last", "amp"}));
  EXPECT_TRUE(name.has("amp"));
  EXPECT_FALSE(name.has("compile"));
  EXPECT_EQ(parse_peer("torch-cpu+eager").text(), "torch-cpu");
}

TEST(PeerNames, RefuseWhatIsUnknownWithTheKnownOnes) {
  const std::string peer = message_of([] { (void)parse_peer("torch-gpu"); });
  EXPECT_TRUE(has(peer, "torch-gpu") && has(peer, "did you mean") && has(peer, "numba-cuda"));
  const std::string option = message_of([] { (void)parse_peer("torch-cpu+chanels_last"); });
  EXPECT_TRUE(has(option, "did you mean 'channels_last'") && has(option, "amp"));
  EXPECT_TRUE(has(message_of([] { (void)parse_peer("numpy+amp"); }), "numpy has no options"));
  EXPECT_TRUE(
      has(message_of([] { (void)parse_peer("torch-cuda+eager+compile"); }), "cannot be combined"));
  EXPECT_TRUE(has(message_of([] { (void)parse_peer("torch-cpu+cuda-graph"); }), "unknown option"));
}

TEST(PeerNames, AskForTorchvisionOnlyWhereItIsWanted) {
  const PeerName own = parse_peer("torch-cpu+torchvision+compile");
  EXPECT_EQ(own.text(), "torch-cpu+compile+torchvision");
  EXPECT_TRUE(has(own.install(), "python3-torchvision"));
  EXPECT_FALSE(has(parse_peer("torch-cpu+compile").install(), "torchvision"));
  EXPECT_TRUE(has(message_of([] { (void)parse_peer("numpy+torchvision"); }), "no options"));
}

TEST(PeerNames, AreToldFromBackends) {
  EXPECT_TRUE(is_peer("torch-cpu+channels_last") && is_peer("numpy") && is_peer("torch-gpu"));
  EXPECT_FALSE(is_peer("native") || is_peer("auto") || is_peer("cuda") || is_peer(""));
}

TEST(PeerNames, TellWhatAPeerDoesNotCompute) {
  const PeerInfo& numba = *parse_peer("numba-cpu").info;
  EXPECT_EQ(numba.refuse("mlp"), "");
  // No part of a name is taken for the whole.
  EXPECT_EQ(numba.refuse("mnist"), "numba-cpu computes mnist_cnn and mlp only");
  EXPECT_EQ(numba.refuse(Precision::bf16), "numba-cpu computes in fp32");
  const PeerInfo& torch = *parse_peer("torch-cpu+compile").info;
  EXPECT_EQ(torch.refuse("densenet201"), "");
  EXPECT_EQ(torch.refuse(Precision::bf16), "");
  EXPECT_EQ(torch.refuse(Precision::fp16), "torch-cpu computes in fp32 and bf16");
}

TEST(PeerParity, HoldsWithinRoundingAndFlagsWhatDiffers) {
  const std::vector<double> ours = {2.3, 2.2, 2.1};
  const PeerParity same =
      check_parity(ours, std::vector<double>{2.300001, 2.2001, 2.1}, Precision::fp32);
  EXPECT_TRUE(same.agrees) << same.text;
  EXPECT_FALSE(same.finding.has_value());
  // The first loss is held more strictly than the later ones, a narrow type less strictly.
  const std::vector<double> other_start = {2.3004, 2.2, 2.1};
  EXPECT_FALSE(check_parity(ours, other_start, Precision::fp32).agrees);
  EXPECT_TRUE(check_parity(ours, other_start, Precision::bf16).agrees);
  // Updates spread what rounding left: more is allowed after two of them than after one.
  EXPECT_TRUE(check_parity(ours, std::vector<double>{2.3, 2.2, 2.108}, Precision::fp32).agrees);
  EXPECT_FALSE(check_parity(ours, std::vector<double>{2.3, 2.208, 2.1}, Precision::fp32).agrees);
  // Gradients summed instead of averaged show in the second loss.
  const PeerParity summed = check_parity(ours, std::vector<double>{2.3, 1.7, 4.0}, Precision::bf16);
  EXPECT_FALSE(summed.agrees);
  EXPECT_EQ(summed.step, 3);
  ASSERT_TRUE(summed.finding.has_value());
  EXPECT_EQ(summed.finding->name, "parity");
  EXPECT_EQ(summed.finding->severity, "error");
  EXPECT_TRUE(has(summed.finding->evidence, "step 3 is 2.1 here and 4 there"));
}

TEST(PeerParity, AllowsWhatRoundingsBecome) {
  const std::vector<double> ours = {2.3, 2.2, 2.1}, theirs = {2.3, 2.208, 2.04};
  EXPECT_FALSE(check_parity(ours, theirs, Precision::fp32).agrees);
  EXPECT_TRUE(
      check_parity(ours, theirs, Precision::fp32, std::vector<double>{1e-7, 2e-3, 1.2e-2}).agrees);
  EXPECT_FALSE(
      check_parity(ours, theirs, Precision::fp32, std::vector<double>{1e-7, 2e-3, 6e-3}).agrees);
}

TEST(PeerParity, IsNotClaimedForLossesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> losses = {2.3, nan};
  const PeerParity parity = check_parity(losses, losses, Precision::fp32);
  EXPECT_FALSE(parity.agrees);
  EXPECT_EQ(parity.step, 2);
  EXPECT_TRUE(parity.finding.has_value());
}

// Scripts in Python's place, which get the worker's path and do as they like.
class FakePython : public testing::FileTest {
 protected:
  [[nodiscard]] PeerOptions python(const std::string& script, double seconds = 20.0) const {
    const fs::path path = write("python", "#!/bin/sh\n" + script);
    fs::permissions(path, fs::perms::owner_all);
    return {.pythons = {path.string()}, .start_seconds = seconds, .reply_seconds = seconds};
  }
  static std::string start(const PeerOptions& options) {
    return message_of([&] { Peer peer(parse_peer("torch-cpu"), options); });
  }
  static constexpr const char* kHello =
      "read line; echo '{\"id\":1,\"versions\":{\"python\":\"0\"},"
      "\"peers\":{\"torch-cpu\":{\"available\":true,\"reason\":null}}}'\n";
};

TEST_F(FakePython, ThatIsMissingSaysWhatToInstall) {
  const std::string text = start({.pythons = {(folder_ / "none").string()}});
  EXPECT_TRUE(has(text, "cannot be started: No such file") && has(text, "python3-torch") &&
              has(text, "RIDGELINE_PYTHON"));
  const PeerAvailability about =
      peer_availability(parse_peer("numpy"), {.pythons = {(folder_ / "none").string()}});
  EXPECT_FALSE(about.available);
  EXPECT_TRUE(has(about.reason, "python3-numpy"));
}

TEST_F(FakePython, ThatCrashesIsReportedWithItsLastWords) {
  const std::string text = start(python("read line; echo one >&2; echo boom >&2; exit 3"));
  EXPECT_TRUE(has(text, "exit code 3") && has(text, "boom") && has(text, "'hello'"));
}

TEST_F(FakePython, ThatIsKilledInTheMiddleFailsThatCallAndTheNext) {
  Peer peer(parse_peer("torch-cpu"), python(std::string(kHello) + "read line; kill -SEGV $$"));
  EXPECT_EQ(peer.about().versions.at("python"), "0");
  const std::string text = message_of([&] { (void)peer.memory(); });
  EXPECT_TRUE(has(text, "SIGSEGV") && has(text, "'memory'"));
  EXPECT_TRUE(has(message_of([&] { (void)peer.losses(1); }), "its worker has ended"));
}

TEST_F(FakePython, ThatHangsIsEndedWithItsChildren) {
  const fs::path number = folder_ / "number";
  const std::string text =
      start(python("sleep 1000 & echo $! > " + number.string() + "; read line; sleep 1000", 0.5));
  EXPECT_TRUE(has(text, "no answer within 0.5 s"));
  pid_t child = 0;
  std::ifstream(number) >> child;
  ASSERT_GT(child, 0);
  // Gone, or dead and not yet taken note of by its new parent.
  for (int i = 0; i < 200 && kill(child, 0) == 0; ++i) {
    std::string word, state;
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    stat >> word >> word >> state;
    if (state == "Z") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_NE(kill(child, 0), 0) << "the grandchild lives";
}

TEST_F(FakePython, ThatTalksNonsenseIsEnded) {
  EXPECT_TRUE(has(start(python("read line; echo Hello, world; read line")), "unreadable answer"));
  EXPECT_TRUE(has(start(python("read line; echo '{\"id\":7}'; read line")), "unreadable answer"));
  EXPECT_TRUE(has(start(python("read line; echo '{\"id\":1}'; read line")), "incomplete"));
  Peer peer(parse_peer("torch-cpu"), python(std::string(kHello) + "read line; echo '{\"id\":2}'"));
  EXPECT_TRUE(has(message_of([&] { (void)peer.memory(); }), "is incomplete"));
}

TEST_F(FakePython, ThatIsTooLongForAPipeDoesNotBlock) {
  // More on standard error than a pipe holds, before the answer.
  const std::string script =
      "i=0; while [ $i -lt 3000 ]; do echo 'a line of some forty characters, or more' >&2; "
      "i=$((i+1)); done\n";
  EXPECT_TRUE(has(start(python(script + "read line; exit 4")), "exit code 4"));
}

// A step with its data, its files and its device.
struct Case {
  PeerWork work;
  Dataset data;
  std::unique_ptr<Device> device = make_device("cpu");

  Case(const std::string& model, std::int64_t image, std::int64_t batch) {
    work.step.model = default_config(model);
    work.step.model.height = work.step.model.width = image;
    work.step.model.classes = 10;
    work.step.batch = batch;
    work.step.optimizer = SgdAttributes{.momentum = 0.9};
    const ModelConfig& config = work.step.model;
    data = make_synthetic({.channels = config.channels,
                           .height = image,
                           .width = image,
                           .classes = static_cast<std::int32_t>(config.classes),
                           .count = 3 * batch,
                           .test_count = 1,
                           .seed = 5})
               .train;
  }
  [[nodiscard]] PeerFiles files() const { return PeerFiles(work.step, data, 7); }
  [[nodiscard]] std::vector<double> ours() const {
    return our_losses(work, PlanRequest(), *device, data, 7, 3);
  }
  [[nodiscard]] PeerParity parity(Peer& peer) const {
    const PeerFiles handed = files();
    peer.prepare(work, handed);
    return check_parity(ours(), peer.losses(kParitySteps), work.step.precision);
  }
};

TEST(SlowPeerParity, UpdatesSpreadRoundingsOfWeights) {
  const Case own("resnet18", 32, 4);
  const std::vector<double> changes =
      rounding_of_losses(own.work, PlanRequest(), *own.device, own.data, 7, 3, own.ours());
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_LT(changes[0], 2e-5) << "one forward pass";
  EXPECT_GT(changes[2], changes[0]);
  EXPECT_LT(changes[2], 1.0);
}

// One worker for all tests of a suite: loading a framework takes seconds.
template <const char* const& Name>
class SlowPeer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      peer_ = std::make_unique<Peer>(parse_peer(Name), PeerOptions{.threads = 2});
    } catch (const Error& error) {
      missing_ = error.what();
    }
  }
  static void TearDownTestSuite() { peer_.reset(); }
  void SetUp() override {
    if (peer_ == nullptr) GTEST_SKIP() << missing_;
  }

  static inline std::unique_ptr<Peer> peer_;
  static inline std::string missing_;
};

constexpr const char* kTorch = "torch-cpu";
constexpr const char* kChannelsLast = "torch-cpu+channels_last";
constexpr const char* kTorchvision = "torch-cpu+torchvision";
constexpr const char* kNumpy = "numpy";
constexpr const char* kNumba = "numba-cpu";
using SlowPeerTorch = SlowPeer<kTorch>;
using SlowPeerChannelsLast = SlowPeer<kChannelsLast>;
using SlowPeerTorchvision = SlowPeer<kTorchvision>;
using SlowPeerNumpy = SlowPeer<kNumpy>;
using SlowPeerNumba = SlowPeer<kNumba>;

TEST_F(SlowPeerTorch, TellsItsVersions) {
  EXPECT_TRUE(peer_->about().available);
  EXPECT_FALSE(peer_->about().versions.at("torch").empty());
  EXPECT_TRUE(has(peer_->about().versions.at("python"), "3."));
}

TEST_F(SlowPeerTorch, ComputesMnistCnnAsWeDo) {
  Case test("mnist_cnn", 28, 16);
  test.work.step.mean = {0.1307};
  test.work.step.deviation = {0.3081};
  test.work.step.label_smoothing = 0.1;
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

TEST_F(SlowPeerTorch, ComputesMlpWithAdamAndSettingsAsWeDo) {
  Case test("mlp", 28, 16);
  test.work.step.model.options = {{"hidden", "20,15"}, {"activation", "tanh"}};
  test.work.step.optimizer = AdamAttributes{.weight_decay = 0.1, .decoupled = true};
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

TEST_F(SlowPeerTorch, ComputesSqueezenetAsWeDoDespiteDropout) {
  Case test("squeezenet1_1", 64, 4);
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

// Batch norms over a few values would make large differences of roundings: the last ones see 32
// here, and updates are small.
Case network_case(const std::string& model) {
  Case test(model, 64, 8);
  test.work.learning_rate = 1e-4;
  return test;
}

TEST_F(SlowPeerTorch, ComputesResidualAndDenseNetworksAsWeDo) {
  for (const char* model : {"resnet18", "mobilenet_v2", "densenet121"}) {
    const PeerParity parity = network_case(model).parity(*peer_);
    EXPECT_TRUE(parity.agrees) << model << ": " << parity.text;
  }
}

// A network that no name means.
class TestNetwork final : public NetworkSource {
 public:
  using Build = std::function<ValueId(NetworkBuilder&, ValueId, const ModelConfig&)>;
  explicit TestNetwork(Build build) : build_(std::move(build)) {}

  ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) const override {
    return build_(builder, image, config);
  }
  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] const std::string& hash() const override { return hash_; }
  [[nodiscard]] std::span<const ModelOption> options() const override { return options_; }
  [[nodiscard]] std::vector<std::string> class_names() const override { return {}; }

 private:
  Build build_;
  std::string path_ = "test.onnx", hash_ = std::string(64, '7');
  std::vector<ModelOption> options_ = {{"dropout", "0.3", "of every kind"}};
};

// The ops that networks of other tests here do not have, with windows that PyTorch has no words
// for.
ValueId every_op(NetworkBuilder& net, ValueId image, const ModelConfig& config) {
  using enum ActivationKind;
  const double rate = config.probability("dropout");
  const auto act = [&](ValueId value, ActivationKind kind, const std::string& layer) {
    return net.activation(value, {.kind = kind, .slope = 0.2}, layer);
  };
  const Conv2dAttributes uneven{.kernel_h = 3, .kernel_w = 2, .pad_top = 2, .pad_right = 1};
  ValueId x = net.conv2d(image, 8, {.bias = false, .window = uneven}, "conv1");
  x = act(net.batch_norm(x, "bn1", {.epsilon = 1e-3, .momentum = 0.3}), leaky_relu, "leaky");
  PoolAttributes pool{.kind = PoolKind::max, .kernel_h = 3, .kernel_w = 2, .pad_left = 1};
  x = net.pool(x, pool, "max");
  pool = {.kind = PoolKind::average,
          .kernel_h = 3,
          .kernel_w = 3,
          .stride_h = 2,
          .stride_w = 2,
          .pad_bottom = 2,
          .pad_right = 1,
          .ceil_mode = true,
          .count_include_pad = false};
  x = net.pool(x, pool, "average");
  const std::vector<ValueId> parts = net.split(net.shuffle(x, 4, "shuffle"), {3, 5}, "split");
  ValueId left = act(net.pad(parts[0], {.channels_before = 2}, "channels"), hard_swish, "swish");
  left = act(net.layer_norm(left, "ln"), gelu, "gelu");
  ValueId right = net.layer_scale(act(parts[1], silu, "silu"), 0.5, "scale");
  right = net.stochastic_depth(net.group_norm(right, 5, "gn"), rate, "depth");
  x = net.add(net.multiply(left, right, "product"), right, "sum");
  ValueId gate =
      act(net.conv2d(net.global_average_pool(x, "squeeze"), 5, {}, "gate"), hard_sigmoid, "hard");
  x = act(net.multiply(x, gate, "excite"), gelu_tanh, "tanh");
  x = net.resize(net.pad(x, 1, -1, 0, 2, "pad"), 13, 9, "resize");
  x = net.slice(net.concat({x, net.slice(x, 1, 2, "slice")}, "concat"), 1, 6, "middle");
  ValueId aux = net.flatten(net.adaptive_average_pool(x, 2, 2, "aux.pool"), "aux.flatten");
  net.auxiliary(net.linear(aux, config.classes, "aux.fc"), 0.4);
  x = net.flatten(net.adaptive_average_pool(x, 5, 4, "adaptive"), "flatten");
  x = net.dropout(act(net.linear(x, 12, "fc1", {}, false), sigmoid, "sigmoid"), rate, "dropout");
  return net.linear(act(x, tanh, "tanh2"), config.classes, "fc2");
}

// What the model's name means is replaced.
Case test_case(TestNetwork::Build build) {
  Case test("mlp", 17, 6);
  test.work.step.model.name = "test";
  test.work.step.model.source = std::make_shared<TestNetwork>(std::move(build));
  return test;
}

TEST_F(SlowPeerTorch, ComputesEveryOpAsWeDo) {
  Case test = test_case(every_op);
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
  EXPECT_EQ(peer_->step(2).size(), 2u) << "with dropout";
  // Without the auxiliary head.
  test.work.inference = true;
  const PeerParity inference = test.parity(*peer_);
  EXPECT_TRUE(inference.agrees) << inference.text;
}

TEST_F(SlowPeerTorch, KeepsValuesThatSeveralOpsRead) {
  const PeerParity parity =
      test_case([](NetworkBuilder& net, ValueId image, const ModelConfig& config) {
        const ValueId x = net.conv2d(image, 4, {.kernel_h = 3, .kernel_w = 3}, "conv");
        const ValueId y = net.add(net.relu(x, "relu"), x, "sum");
        const ValueId z = net.add(y, net.relu(net.relu(y, "relu2"), "relu3"), "sum2");
        return net.linear(net.flatten(net.relu(z, "relu4"), "flatten"), config.classes, "fc");
      }).parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

TEST_F(SlowPeerTorch, FreezesBatchNormsAsWeDo) {
  Case test = network_case("resnet18");
  const std::vector<double> all = test.ours();
  test.work.step.freeze = {"bn1.*", "layer*"};
  EXPECT_NE(test.ours()[1], all[1]);
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

TEST_F(SlowPeerChannelsLast, ComputesAsWeDo) {
  const PeerParity parity = network_case("mobilenet_v2").parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

TEST_F(SlowPeerTorchvision, RunsItsOwnModuleAsWeDo) {
  EXPECT_FALSE(peer_->about().versions.at("torchvision").empty());
  Case test = network_case("mobilenet_v2");
  test.work.step.model.options = {{"dropout", "0.4"}};
  test.work.step.freeze = {"features.0.*"};
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
  test.work.inference = true;
  const PeerParity inference = test.parity(*peer_);
  EXPECT_TRUE(inference.agrees) << inference.text;
}

TEST_F(SlowPeerTorchvision, SaysWhichNetworksItLacks) {
  const Case test("mnist_cnn", 28, 4);
  const PeerFiles files = test.files();
  const std::string text = message_of([&] { peer_->prepare(test.work, files); });
  EXPECT_TRUE(has(text, "has no network 'mnist_cnn'; leave out +torchvision"));
  Case grey = network_case("resnet18");
  grey.work.step.model.channels = 1;
  grey.data = Case("mlp", 64, 8).data;
  const PeerFiles other = grey.files();
  EXPECT_TRUE(has(message_of([&] { peer_->prepare(grey.work, other); }), "3 channels, not 1"));
}

TEST_F(SlowPeerTorch, InfersAndFreezesAsWeDo) {
  Case test("mnist_cnn", 28, 16);
  test.work.step.freeze = {"conv*"};
  const PeerParity frozen = test.parity(*peer_);
  EXPECT_TRUE(frozen.agrees) << frozen.text;
  test.work.step.freeze.clear();
  test.work.inference = true;
  const PeerParity inference = test.parity(*peer_);
  EXPECT_TRUE(inference.agrees) << inference.text;
}

TEST_F(SlowPeerTorch, IsFlaggedWhenItComputesSomethingElse) {
  Case test("mlp", 28, 16);
  const std::vector<double> ours = test.ours();
  test.work.learning_rate = 0.5;
  const PeerFiles files = test.files();
  peer_->prepare(test.work, files);
  const PeerParity parity = check_parity(ours, peer_->losses(kParitySteps), Precision::fp32);
  EXPECT_FALSE(parity.agrees) << parity.text;
  ASSERT_TRUE(parity.finding.has_value());
  EXPECT_GT(parity.step, 1) << "the first loss has seen no update";
}

TEST_F(SlowPeerTorch, TimesStepsAndTellsItsMemory) {
  Case test("mlp", 28, 16);
  const PeerFiles files = test.files();
  EXPECT_GT(peer_->prepare(test.work, files).seconds, 0.0);
  EXPECT_EQ(peer_->device_name(), "cpu");
  const std::vector<Sample> samples = peer_->step(4);
  ASSERT_EQ(samples.size(), 4u);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].iteration, static_cast<std::int64_t>(i));
    EXPECT_GT(samples[i].wall_seconds, 0.0);
    EXPECT_FALSE(samples[i].device_seconds || samples[i].upload_seconds);
    if (i > 0) {
      EXPECT_GT(samples[i].at_seconds, samples[i - 1].at_seconds);
    }
  }
  const Sample split = peer_->step(1, SampleKind::split, true)[0];
  EXPECT_TRUE(split.upload_seconds && split.forward_seconds && split.backward_seconds);
  EXPECT_LE(*split.forward_seconds + *split.backward_seconds + *split.optimizer_seconds,
            split.wall_seconds * 1.0001);
  const PeerMemory memory = peer_->memory();
  EXPECT_GT(memory.rss_bytes, 1 << 20);
  EXPECT_GE(memory.peak_rss_bytes, memory.rss_bytes);
  EXPECT_FALSE(memory.peak_bytes.has_value()) << "PyTorch keeps no account of the CPU's memory";
  EXPECT_FALSE(peer_->queued(3)) << "nothing is queued on the CPU";
}

TEST_F(SlowPeerTorch, GoesOnAfterAnErrorOfItsOwn) {
  Case test("mlp", 28, 16);
  const PeerFiles files = test.files();
  test.work.step.precision = Precision::tf32;
  EXPECT_TRUE(has(message_of([&] { peer_->prepare(test.work, files); }), "tf32"));
  EXPECT_TRUE(has(message_of([&] { (void)peer_->step(1); }), "nothing is prepared"));
  test.work.step.precision = Precision::fp32;
  test.work.step.model.options = {{"hidden", "11"}};
  EXPECT_TRUE(has(message_of([&] { peer_->prepare(test.work, files); }), "fc1.weight"));
  test.work.step.model.options.clear();
  peer_->prepare(test.work, files);
  EXPECT_EQ(peer_->step(1).size(), 1u);
}

TEST_F(SlowPeerNumpy, ComputesMlpAsWeDoAndNothingElse) {
  Case test("mlp", 28, 16);
  test.work.step.optimizer = SgdAttributes{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true};
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
  const Case other("mnist_cnn", 28, 16);
  const PeerFiles files = other.files();
  EXPECT_TRUE(has(message_of([&] { peer_->prepare(other.work, files); }), "mnist_cnn has conv"));
}

TEST_F(SlowPeerNumba, ComputesMnistCnnAsWeDo) {
  const Case test("mnist_cnn", 28, 16);
  const PeerParity parity = test.parity(*peer_);
  EXPECT_TRUE(parity.agrees) << parity.text;
}

using SlowPeerAlone = testing::FileTest;

TEST_F(SlowPeerAlone, WritesAFileForTheStore) {
  const PeerAvailability about = peer_availability(parse_peer("numpy"));
  if (!about.available) GTEST_SKIP() << about.reason;
  const fs::path script = write("worker.py", worker_script());
  const fs::path out = folder_ / "out.json";
  ModelConfig mlp = default_config("mlp");
  mlp.options = {{"hidden", "12"}};
  const fs::path first = write("mlp.json", json_text(network_document(mlp, {})));
  const fs::path second =
      write("cnn.json", json_text(network_document(default_config("mnist_cnn"), {})));
  const std::string command = fmt::format(
      "{} {} --alone --models {},{} --peers numpy --batch 8,16 --warmup 2 --iterations 11 "
      "--threads 1 --out {} 2> {}",
      about.python, script.string(), first.string(), second.string(), out.string(),
      (folder_ / "messages").string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string said = read_text(folder_ / "messages");
  EXPECT_TRUE(
      has(said, "numpy mnist_cnn, batch 8: n/a: numpy computes networks of flatten, linear"));
  const auto document = nlohmann::json::parse(std::ifstream(out));
  EXPECT_EQ(document.at("ridgeline_import"), 2);
  EXPECT_FALSE(document.at("environment").at("cpu").get<std::string>().empty());
  ASSERT_EQ(document.at("runs").size(), 2u);
  const auto& run = document.at("runs")[1];
  EXPECT_EQ(run.at("environment"), document.at("environment").at("key"));
  EXPECT_EQ(run.at("work").at("settings").at("hidden"), "12");
  EXPECT_EQ(run.at("work").at("batch"), 16);
  EXPECT_EQ(run.at("work").at("optimizer"), "sgd");
  EXPECT_EQ(run.at("work").at("momentum"), 0.9);
  EXPECT_EQ(run.at("executor").at("backend"), "numpy");
  ASSERT_EQ(run.at("samples").size(), 13u);
  EXPECT_EQ(run.at("samples")[1].at("kind"), "warmup");
  EXPECT_EQ(run.at("samples")[12].at("kind"), "measured");
  EXPECT_EQ(run.at("samples")[12].at("block"), 1);
  EXPECT_GT(run.at("samples")[12].at("wall_seconds").get<double>(), 0.0);
}

// Steps on a device follow each other unwaited for, as ours do: one wait at the end, and the mean
// by the device's clock.
TEST_F(SlowPeerAlone, QueuesStepsOnADevice) {
  const fs::path script = write("worker.py", worker_script());
  const fs::path test = write("test.py", R"(
import worker

class Device:
    waits, steps, marks = 0, 0, 0
    def device_name(self): return "cuda:0 Test"
    def synchronize(self): self.waits += 1
    def step(self): self.steps += 1
    def mark(self):
        self.marks += 1
        return self.steps
    def between(self, begin, end): return 0.5 * (end - begin)

run = worker.Run.__new__(worker.Run)
run.peer, run.position = Device(), 0
answer = run.queued(10)
assert (run.peer.waits, run.peer.steps, run.peer.marks) == (2, 10, 2), vars(run.peer)
assert answer["device"] == 0.5 and answer["wall"] > 0, answer
assert run.position == 10
)");
  const std::string command =
      fmt::format("cd '{}' && python3 '{}'", script.parent_path().string(), test.string());
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(PeerFiles, GoAwayWithTheirObject) {
  const Case test("mlp", 28, 4);
  fs::path weights;
  {
    const PeerFiles files = test.files();
    weights = files.weights();
    EXPECT_EQ(files.batches(), 3);
    EXPECT_EQ(open_weights(weights).find("fc1.weight")->text(), "10x784 f32");
    EXPECT_EQ(open_weights(files.samples()).find("images")->text(), "12x1x28x28 u8");
  }
  EXPECT_FALSE(fs::exists(weights.parent_path()));
}

}  // namespace
}  // namespace ridgeline
