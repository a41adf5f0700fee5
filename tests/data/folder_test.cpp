// Folders, small files and durable files: what they hold, what a failure leaves behind.

#include "base/folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text_file.h"
#include "support/small_disk.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    root_ =
        fs::temp_directory_path() / fmt::format("ridgeline_folder_{}{}", getpid(), test->name());
    fs::create_directories(root_ / "b/c");
    for (const char* name : {"z", "a", "b/y", "b/c/x"}) std::ofstream(root_ / name) << name;
  }
  void TearDown() override { fs::remove_all(root_); }

  [[nodiscard]] std::vector<std::string> names() const {
    std::error_code error;
    return names_in(root_, error);
  }

  fs::path root_;
};

using Names = std::vector<std::string>;

TEST_F(Folder, IsListedInOrder) {
  fs::create_symlink("b", root_ / "link");
  std::error_code error;
  EXPECT_EQ(names_in(root_, error), (Names{"a", "b", "link", "z"}));
  EXPECT_FALSE(error);
  for (const FolderEntry& entry : entries_in(root_, error)) {
    if (entry.type == fs::file_type::unknown) continue;  // a file system that does not tell
    EXPECT_EQ(entry.type, fs::symlink_status(root_ / entry.name).type()) << entry.name;
  }
  EXPECT_EQ(files_below(root_), (Names{"a", "b/c/x", "b/y", "link", "z"}));
}

TEST_F(Folder, ThatCannotBeReadIsNamed) {
  std::error_code error;
  EXPECT_TRUE(names_in(root_ / "nowhere", error).empty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  try {
    (void)files_below(root_ / "nowhere");
    FAIL() << "a folder that is not there was listed";
  } catch (const Error& failure) {
    EXPECT_NE(std::string(failure.what()).find("nowhere"), std::string::npos);
  }
}

TEST_F(Folder, IsRemovedWithAllBelowItButNotBehindLinks) {
  fs::create_symlink(root_ / "a", root_ / "b/c/link");
  fs::create_directory_symlink(root_ / "b", root_ / "to_b");
  remove_tree(root_ / "to_b");
  EXPECT_EQ(names(), (Names{"a", "b", "z"}));
  remove_tree(root_ / "b");
  EXPECT_EQ(names(), (Names{"a", "z"}));
  remove_tree(root_ / "nowhere");
}

TEST_F(Folder, ThatIsNewGoesAwayUnlessItIsKept) {
  {
    NewFolder fresh(root_ / "new");
    write_text(fresh.path() / "file", "text");
    fresh.rename_to(root_ / "renamed");
    EXPECT_TRUE(fs::exists(root_ / "renamed/file"));
  }
  EXPECT_EQ(names(), (Names{"a", "b", "z"}));
  {
    NewFolder fresh(root_ / "new");
    fresh.keep();
  }
  EXPECT_TRUE(fs::exists(root_ / "new"));
}

TEST_F(Folder, TextIsReadAsItWasWritten) {
  std::string text(200000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7);
  write_text(root_ / "a", text);
  EXPECT_EQ(read_text(root_ / "a"), text);
  write_text(root_ / "a", "");
  EXPECT_EQ(read_text(root_ / "a"), "");
  EXPECT_THROW((void)read_text(root_ / "b"), Error);
}

TEST_F(Folder, AFullDiskLeavesTheFormerFileAndNothingElse) {
  const std::string before = read_text(root_ / "a");
  {
    const testing::SmallDisk disk(1000);
    EXPECT_THROW(write_durably(root_ / "a", std::string(5000, 'x')), Error);
    EXPECT_THROW(write_text(root_ / "z", std::string(5000, 'x')), Error);
  }
  EXPECT_EQ(read_text(root_ / "a"), before);
  EXPECT_EQ(names(), (Names{"a", "b", "z"}));
}

TEST_F(Folder, ADurableFileTakesItsNameWhenItIsWhole) {
  {
    DurableFile file(root_ / "new");
    file.write("0123456789");
    file.write_at(2, std::as_bytes(std::span("ab", 2)));
    EXPECT_FALSE(fs::exists(root_ / "new"));
    EXPECT_FALSE(file.in_place());
    file.commit();
    EXPECT_TRUE(file.in_place());
  }
  EXPECT_EQ(read_text(root_ / "new"), "01ab456789");
  EXPECT_EQ(names(), (Names{"a", "b", "new", "z"}));
}

TEST(ThreadsParallel, AnExceptionIsThrownWhenAllThreadsHaveEnded) {
  const int before = thread_count();
  set_thread_count(4);
  std::atomic<int> ended = 0;
  const auto work = [&](int failing) {
    ended = 0;
    parallel([&](int thread, int) {
      if (thread == failing) throw Error(ErrorKind::failure, "thread");
      ++ended;
    });
  };
  EXPECT_THROW(work(0), Error);
  EXPECT_EQ(ended, 3);
  EXPECT_THROW(work(3), Error);
  EXPECT_EQ(ended, 3);
  EXPECT_NO_THROW(work(-1));
  EXPECT_EQ(ended, 4);
  set_thread_count(before);
}

}  // namespace
}  // namespace ridgeline
