#include "base/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace ridgeline {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"reference", "native", "onednn", "auto", "sgd"};

TEST(Suggest, FindsNamesOneTypingErrorAway) {
  EXPECT_EQ(nearest("natve", kNames), "native");    // a letter left out
  EXPECT_EQ(nearest("naative", kNames), "native");  // a letter too many
  EXPECT_EQ(nearest("nadive", kNames), "native");   // another letter
  EXPECT_EQ(nearest("onedn", kNames), "onednn");
  EXPECT_EQ(nearest("refernece", kNames), "reference");  // two letters swapped
  EXPECT_EQ(nearest("sdg", kNames), "sgd");
}

TEST(Suggest, IgnoresLetterCase) {
  EXPECT_EQ(nearest("OneDNN", kNames), "onednn");
  EXPECT_EQ(nearest("NATVIE", kNames), "native");
}

TEST(Suggest, IsSilentAboutOtherWords) {
  EXPECT_EQ(nearest("tensorflow", kNames), std::nullopt);
  EXPECT_EQ(nearest("", kNames), std::nullopt);
  EXPECT_EQ(nearest("native", {}), std::nullopt);
  EXPECT_EQ(did_you_mean("tensorflow", kNames), "");
}

TEST(Suggest, PrefersTheNearestAndThenTheFirst) {
  constexpr std::array<std::string_view, 3> kModels = {"resnet50", "resnet18", "resnet34"};
  EXPECT_EQ(nearest("resnet19", kModels), "resnet18");
  EXPECT_EQ(nearest("resnet", kModels), "resnet50");
}

TEST(Suggest, LeavesOutAMakersName) {
  constexpr std::array<std::string_view, 3> kGpus = {"Tesla T4", "GeForce RTX 4090", "H100"};
  EXPECT_EQ(nearest("RTX 4099", kGpus), "GeForce RTX 4090");
  EXPECT_EQ(nearest("T5", kGpus), "Tesla T4");
  EXPECT_EQ(nearest("quantum", kGpus), std::nullopt);
}

TEST(Suggest, EndsAMessage) {
  EXPECT_EQ(did_you_mean("natve", kNames), "; did you mean 'native'?");
}

}  // namespace
}  // namespace ridgeline
