// Full disks, killed writers, and several writers at once.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "store/store.h"
#include "support/small_disk.h"
#include "support/store_rows.h"
#include "support/store_test_folder.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

TEST_F(StoreTest, AFullDiskIsAFailureThatKeepsWhatWasCommitted) {
  RunId id = 0;
  {
    Store store(path());
    store.add(example_environment());
    id = store.begin(example_run());
    store.add(id, example_samples(100));
    const SmallDisk disk(200'000);
    try {
      store.add(id, example_samples(50'000, 100));
      ADD_FAILURE() << "the disk was large enough";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::failure);
      expect_contains(error.what(), {"r.db", "committed before is kept"});
    }
  }
  EXPECT_EQ(Store::open_existing(path()).samples(id).size(), 100U);
}

TEST_F(StoreTest, AStoreThatCannotBeWrittenIsAFailureAndCanBeRead) {
  try {
    Store store(fs::path("/proc/ridgeline.db"));
    ADD_FAILURE() << "/proc was written";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    expect_contains(error.what(), {"/proc/ridgeline.db", "cannot be"});
  }
  {
    Store store(path());
    (void)write_example(store);
  }
  if (geteuid() == 0) return;  // whom permissions do not bind
  fs::permissions(path(), fs::perms::owner_read);
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(Store store(path()), Error);
  EXPECT_EQ(Store::open_existing(path()).run_count(), 1);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(StoreTest, AKilledWriterLeavesAllThatItCommitted) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Store store(path());
    store.add(example_environment());
    const RunId id = store.begin(example_run());
    for (std::int64_t i = 0;; ++i) {
      store.add(id, example_samples(1, i));
      if (::write(ready[1], "x", 1) != 1) _exit(1);
    }
  }
  char told[50];
  std::int64_t committed = 0;
  while (committed < 50) {
    const ssize_t count = ::read(ready[0], told, sizeof(told));
    ASSERT_GT(count, 0);
    committed += count;
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  close(ready[0]);
  close(ready[1]);
  const Store store = Store::open_existing(path());
  const RunRecord run = store.run("last");
  EXPECT_EQ(run.status, RunStatus::running);
  const std::vector<Sample> samples = store.samples(run.id);
  EXPECT_GE(static_cast<std::int64_t>(samples.size()), committed);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].iteration, static_cast<std::int64_t>(i));
  }
}

TEST_F(StoreTest, TwoProcessesLoseNothing) {
  constexpr std::int64_t kCalls = 60;
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    try {
      Store store(path());  // both try to make it
      store.add(example_environment());
      const RunId id = store.begin(example_run());
      for (std::int64_t i = 0; i < kCalls; ++i) store.add(id, example_samples(20, 20 * i));
      store.finish(id, RunStatus::complete, "", {}, {});
      _exit(0);
    } catch (const std::exception& error) {
      fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Store store = Store::open_existing(path());
  ASSERT_EQ(store.run_count(), 2);
  for (const RunRecord& run : store.runs()) {
    EXPECT_EQ(run.status, RunStatus::complete);
    EXPECT_EQ(store.samples(run.id).size(), static_cast<std::size_t>(20 * kCalls));
  }
}

class ThreadsStoreTest : public StoreTest {};

TEST_F(ThreadsStoreTest, TwoThreadsOnOneRunLoseNothing) {
  RunId id = 0;
  {
    Store store(path());
    store.add(example_environment());
    id = store.begin(example_run());
  }
  std::vector<std::thread> threads;
  for (std::int64_t process = 0; process < 2; ++process) {
    threads.emplace_back([&, process] {
      Store store(path());
      for (std::int64_t i = 0; i < 40; ++i) {
        std::vector<Sample> samples = example_samples(5, 5 * i);
        for (Sample& sample : samples) sample.process = process;
        store.add(id, samples);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const Sample& sample : Store::open_existing(path()).samples(id)) {
    seen.insert({sample.process, sample.iteration});
  }
  EXPECT_EQ(seen.size(), 400U);
}

}  // namespace
}  // namespace ridgeline
