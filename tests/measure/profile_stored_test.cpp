// What of a profile is written down for reports.

#include <gtest/gtest.h>

#include "measure/profile/stored.h"

namespace ridgeline {
namespace {

ProfileEvent event(Activity activity, const char* name, const char* track, double begin, double end,
                   std::int64_t iteration, std::int64_t step = -1) {
  ProfileEvent made;
  made.activity = activity;
  made.name = name;
  made.track = track;
  made.begin = begin;
  made.end = end;
  made.iteration = iteration;
  made.step = step;
  return made;
}

TEST(ProfileStored, TheTimelineIsTheIterationOfMiddleLengthFromItsBeginning) {
  Profile profile;
  profile.events = {event(Activity::iteration, "0", "host", 1.0, 5.0, 0),
                    event(Activity::step, "slow", "host", 1.0, 4.0, 0, 0),
                    event(Activity::iteration, "1", "host", 5.0, 7.0, 1),
                    event(Activity::step, "middle", "host", 5.5, 6.5, 1, 0),
                    event(Activity::kernel, "gemm", "stream 7", 6.0, 6.5, 1, 0),
                    event(Activity::iteration, "2", "host", 7.0, 8.0, 2)};
  const std::vector<TimelineEntry> entries = middle_iteration(profile);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].activity, "iteration");
  EXPECT_EQ(entries[0].begin_seconds, 0.0);
  EXPECT_EQ(entries[0].end_seconds, 2.0);
  EXPECT_EQ(entries[1].name, "middle");
  EXPECT_EQ(entries[1].begin_seconds, 0.5);
  EXPECT_EQ(entries[2].activity, "kernel");
  EXPECT_EQ(entries[2].track, "stream 7");
  EXPECT_EQ(entries[2].step, 0);
  EXPECT_TRUE(middle_iteration(Profile{}).empty());
}

TEST(ProfileStored, PartsOfLoopsAreKeptWhereThereAreFewThreads) {
  const auto with_threads = [](int threads) {
    Profile profile;
    profile.events.push_back(event(Activity::iteration, "0", "host", 0.0, 1.0, 0));
    for (int i = 0; i < threads; ++i) {
      const std::string track = "thread " + std::to_string(i);
      profile.events.push_back(event(Activity::body, "loop", track.c_str(), 0.0, 0.5, 0));
    }
    return middle_iteration(profile).size();
  };
  EXPECT_EQ(with_threads(2), 3U);
  EXPECT_EQ(with_threads(64), 1U);
}

TEST(ProfileStored, OwnersThatNeverHaveBytesAreLeftOut) {
  Profile profile;
  LiveBytes first, second;
  first.by_role[static_cast<std::size_t>(Role::parameter)] = 100;
  second.step = 1;
  second.by_role[static_cast<std::size_t>(Role::parameter)] = 100;
  second.by_role[static_cast<std::size_t>(Role::activation)] = 50;
  profile.memory = {first, second};
  const std::vector<LiveEntry> entries = live_entries(profile);
  ASSERT_EQ(entries.size(), 4U);  // two owners at two steps
  std::int64_t at_second = 0;
  for (const LiveEntry& entry : entries) {
    EXPECT_TRUE(entry.category == "parameter" || entry.category == "activation");
    if (entry.step == 1) at_second += entry.bytes;
  }
  EXPECT_EQ(at_second, 150);
}

}  // namespace
}  // namespace ridgeline
