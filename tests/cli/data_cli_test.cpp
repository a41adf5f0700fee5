// `ridgeline data` and training on images, run as a user would.

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/text_file.h"
#include "data/catalog.h"
#include "support/http_server.h"
#include "support/images.h"
#include "support/program.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;
using Json = nlohmann::json;

class DataCli : public FileTest {
 protected:
  struct Outcome {
    int code;
    std::string out, err;
  };
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    const std::string command =
        "cd " + folder_.string() + " && " + program() + " " + arguments + " >.out 2>.err";
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), read_text(folder_ / ".out"), read_text(folder_ / ".err")};
  }
  void write_photos() const {
    write_class_folders(folder_ / "photos/train", {"cat", "dog"}, 8);
    write_class_folders(folder_ / "photos/val", {"cat", "dog"}, 3, 60);
  }
};

const std::string kTrainOnPhotos =
    "train mnist_cnn --image 28x28 --epochs 2 --batch 4 --json --data ";

TEST_F(DataCli, TrainsOnAFolderAndOnItsPackAlike) {
  write_photos();
  const Outcome folder = run(kTrainOnPhotos + "photos --workers 1");
  ASSERT_EQ(folder.code, 0) << folder.err;
  const Json first = Json::parse(folder.out);
  EXPECT_EQ(first["data"]["image"], "3x28x28");
  EXPECT_EQ(first["data"]["classes"], 2);
  EXPECT_EQ(first["data"]["train_samples"], 16);
  EXPECT_EQ(first["data"]["crop"], true);
  EXPECT_EQ(first["data"]["flip"], true);
  expect_contains(first["data"]["normalisation"], {"0.485,0.456,0.406"});

  const Outcome packed = run("data pack photos p.pack --jpeg");
  ASSERT_EQ(packed.code, 0) << packed.err;
  expect_contains(packed.out, {"p.pack: 16 training + 6 test images of 2 classes"});
  const Outcome again = run(kTrainOnPhotos + "p.pack --workers 3");
  ASSERT_EQ(again.code, 0) << again.err;
  const Json second = Json::parse(again.out);
  EXPECT_EQ(second["epochs"][1]["train_loss"], first["epochs"][1]["train_loss"]);
  EXPECT_EQ(second["epochs"][1]["test_loss"], first["epochs"][1]["test_loss"]);
}

TEST_F(DataCli, SkippedFilesAreNamedByEveryCommand) {
  write_photos();
  write_file(folder_ / "photos/train/cat/x.webp", {'R', 'I', 'F', 'F'});
  for (const std::string& command :
       {kTrainOnPhotos + "photos", std::string("data pack photos p.pack"),
        std::string("eval mnist_cnn --classes 2 --data photos")}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    expect_contains(outcome.err, {"1 image file is passed over", "cat/x.webp"});
  }
  const Outcome check = run("data check photos");
  EXPECT_EQ(check.code, 1);
  expect_contains(check.out, {"skipped image", "cat/x.webp"});
}

// "café" and a label in Latin-1: names of files are bytes, JSON is UTF-8.
TEST_F(DataCli, NamesThatAreNoUtf8BreakNothing) {
  const std::string cafe = "caf\xe9";
  for (const char* part : {"train", "val"}) {
    write_class_folders(folder_ / "d" / part, {cafe, "tea"}, 4, part[0] == 'v' ? 500 : 0);
  }
  const Outcome train =
      run(kTrainOnPhotos + "d --checkpoint run --label " + cafe + " --store s.db --confusion");
  ASSERT_EQ(train.code, 0) << train.err;
  for (const std::string& command :
       {std::string("data check d --json"), std::string("data pack d p.pack --json"),
        "infer d/train/" + cafe + "/0.jpg --checkpoint run --json",
        std::string("eval --checkpoint run --data d --json --confusion"),
        std::string("store list --store s.db --json"),
        std::string("store show 1 --store s.db --json"), "data check d/train/" + cafe + "/0.jpg"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, command.ends_with(".jpg") ? 2 : 0) << command << outcome.err;
    EXPECT_EQ(outcome.err.find("UTF-8"), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.code != 0 || Json::accept(outcome.out)) << command;
  }
  expect_contains(run("store list --store s.db --json").out, {"caf\xef\xbf\xbd"});
  expect_contains(run("infer d/val/tea/0.jpg --checkpoint run").out, {"caf\xef\xbf\xbd", "tea"});
  EXPECT_EQ(load_dataset((folder_ / "p.pack").string()).train.class_names[0], "caf\xef\xbf\xbd");
  const Outcome resumed = run(kTrainOnPhotos + "d --checkpoint run --resume --store none");
  EXPECT_EQ(resumed.code, 0) << resumed.err;
}

TEST_F(DataCli, APackThatEnlargesItsImagesSaysSo) {
  write_photos();
  expect_contains(run("data pack photos p.pack").err, {"images are enlarged to 224x224", "--size"});
  EXPECT_EQ(run("data pack photos q.pack --size 4x4").err, "");
}

TEST_F(DataCli, ListsOfProblemsEndAfterTen) {
  write_photos();
  for (int i = 0; i < 25; ++i) {
    write_file(folder_ / "photos/train/cat" / fmt::format("bad{:02}.jpg", i), {'x'});
  }
  const Outcome check = run("data check photos");
  expect_contains(check.out, {"bad09.jpg", "25 problems: 25 x broken image", "--json lists all"});
  EXPECT_EQ(check.out.find("bad10.jpg"), std::string::npos);
  EXPECT_EQ(Json::parse(run("data check photos --json").out)["problems"].size(), 25U);
  expect_contains(run("data pack photos p.pack --skip-broken").err,
                  {"left out 25 images", "and 15 more"});
  expect_contains(run("eval mnist_cnn --classes 2 --data photos --part train").err,
                  {"25 broken images", "and 15 more"});
}

TEST_F(DataCli, BrokenImagesAreListedOrRefused) {
  write_photos();
  write_file(folder_ / "photos/train/dog/3.jpg", {'b', 'a', 'd'});
  const Outcome outcome = run(kTrainOnPhotos + "photos");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document["broken_images"].size(), 1U);
  expect_contains(document["broken_images"][0], {"dog/3.jpg"});
  const Outcome table = run("train mnist_cnn --image 28x28 --epochs 1 --batch 4 --data photos");
  expect_contains(table.out, {"broken images        1, replaced", "dog/3.jpg: is neither"});
  const Outcome strict = run(kTrainOnPhotos + "photos --strict");
  EXPECT_EQ(strict.code, 2);
  expect_contains(strict.err, {"dog/3.jpg"});
}

TEST_F(DataCli, ChecksAFolder) {
  write_photos();
  const Outcome sound = run("data check photos");
  EXPECT_EQ(sound.code, 0);
  expect_contains(sound.out, {"16 training + 6 test images, 2 classes", "no problems"});
  write_file(folder_ / "photos/train/dog/3.jpg", {});
  const Outcome broken = run("data check photos");
  EXPECT_EQ(broken.code, 1);
  expect_contains(broken.out, {"broken image", "dog/3.jpg", "is empty", "1 problems"});
  const Json document = Json::parse(run("data check photos --json").out);
  EXPECT_EQ(document["problems"][0]["problem"], "broken image");
  EXPECT_EQ(run("data check nowhere").code, 2);
}

TEST_F(DataCli, ListsAndFetches) {
  const Json list = Json::parse(run("data list --json").out);
  EXPECT_EQ(list["datasets"][2]["name"], "cifar10");
  expect_contains(run("data list").out, {"tiny-imagenet", "cs231n.stanford.edu"});
  HttpServer server;
  const Outcome absent = run("data get cifar10 --into d --from " + server.address());
  EXPECT_EQ(absent.code, 1);
  expect_contains(absent.err,
                  {server.address() + "cifar-10-binary.tar.gz", "404", "d/cifar-10-binary.tar.gz"});
  server.serve("cifar-10-binary.tar.gz", ramp(5000));
  const Outcome wrong = run("data get cifar10 --into d --from " + server.address());
  EXPECT_EQ(wrong.code, 1);
  expect_contains(wrong.err, {"c32a1d4ab5d03f1284b67883e8d87530", "damaged or changed"});
  EXPECT_FALSE(fs::exists(folder_ / "d"));
  expect_contains(run("data get nothing").err, {"unknown dataset 'nothing'", "imagenette"});
}

TEST_F(DataCli, RefusesWrongUse) {
  write_photos();
  const auto refused = [&](const std::string& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    expect_contains(outcome.err, parts);
  };
  refused("data pack photos x.pack --jpeg --size 32", {"cannot be combined with --size"});
  refused("data pack photos nowhere/x.pack", {"nowhere/x.pack"});
  refused(kTrainOnPhotos + "photos --augment zoom", {"--augment", "zoom", "crop"});
  refused(kTrainOnPhotos + "photos --workers -1", {"--workers -1"});
  refused("train mnist_cnn --data photos --image 3x28x28", {"--image 3x28x28", "HxW"});
  refused(kTrainOnPhotos + "photos --normalize mnist,1", {"--normalize"});
  refused("train mnist_cnn --data mnist_cnn.pack", {"no such file"});
  refused("train mlp --data photos --image 28x28 --full-batch --augment crop", {"full-batch"});
  EXPECT_FALSE(fs::exists(folder_ / "x.pack"));
}

}  // namespace
}  // namespace ridgeline
