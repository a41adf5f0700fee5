#pragma once

// Runs the program itself, as a user or a script would.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ridgeline::testing {

// The one built with these tests, unless $RIDGELINE_BINARY names another.
inline std::string program() {
  const char* given = std::getenv("RIDGELINE_BINARY");
  if (given != nullptr) return given;
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename("ridgeline");
}

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Outcome {
  int code = -1;  // 128 + n when signal n ended it
  std::string out, err;
};

// A running program with its two output streams.
class Child {
 public:
  Child(const std::string& arguments, const std::filesystem::path& folder) {
    std::vector<std::string> words = words_of(arguments);
    words.insert(words.begin(), program());
    int out[2], err[2];
    if (pipe(out) != 0 || pipe(err) != 0) throw std::runtime_error("pipe");
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      for (const int fd : {out[0], out[1], err[0], err[1]}) close(fd);
      if (chdir(folder.c_str()) != 0) _exit(126);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    close(out_);
    close(err_);
  }

  // Reads standard output up to a word.
  void wait_for(const std::string& word) { read_until(out_, outcome_.out, word); }
  // Reads standard error up to a word.
  void wait_for_message(const std::string& word) { read_until(err_, outcome_.err, word); }
  void send(int signal) const { kill(pid_, signal); }
  // Waits until the program has used so much time of a processor.
  void wait_for_cpu_seconds(double seconds) const {
    for (double used = 0.0; used < seconds;) {
      std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
      std::string word;
      double ticks = 0.0;
      for (int i = 1; i <= 15 && stat >> word; ++i) ticks += i >= 14 ? std::stod(word) : 0.0;
      used = ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
      usleep(10000);
    }
  }

  // Standard error is read after standard output: what is written there must fit into a pipe.
  Outcome finish() {
    read_until(out_, outcome_.out, "");
    read_until(err_, outcome_.err, "");
    int status = 0;
    waitpid(pid_, &status, 0);
    outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome_;
  }

 private:
  static void read_until(int fd, std::string& text, const std::string& word) {
    char buffer[4096];
    while (word.empty() || text.find(word) == std::string::npos) {
      const ssize_t count = read(fd, buffer, sizeof(buffer));
      if (count <= 0) return;
      text.append(buffer, static_cast<std::size_t>(count));
    }
  }

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

// A test that runs the program in a folder of its own.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("ridgeline_" + std::to_string(getpid()) + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_).finish();
  }

  std::filesystem::path folder_;
};

}  // namespace ridgeline::testing
