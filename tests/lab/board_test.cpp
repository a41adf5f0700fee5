// Event files for TensorBoard: every byte of them, read by a reader of the test's own.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "lab/board/bench_board.h"
#include "lab/board/event_file.h"
#include "lab/board/wire.h"
#include "support/program.h"
#include "support/small_disk.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;
using testing::SmallDisk;

// --- A reader of records and messages ---------------------------------------------------------

// Bit by bit, without a table.
std::uint32_t slow_crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return crc ^ 0xFFFFFFFF;
}

std::uint32_t slow_masked(std::string_view bytes) {
  const std::uint32_t crc = slow_crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

template <typename Number>
Number number_at(std::string_view bytes, std::size_t place) {
  Number number{};
  std::memcpy(&number, bytes.substr(place, sizeof(number)).data(), sizeof(number));
  return number;
}

std::vector<std::string> records_of(std::string_view bytes) {
  std::vector<std::string> records;
  while (!bytes.empty()) {
    if (bytes.size() < 16) throw std::runtime_error("half a record");
    const auto length = number_at<std::uint64_t>(bytes, 0);
    if (number_at<std::uint32_t>(bytes, 8) != slow_masked(bytes.substr(0, 8))) {
      throw std::runtime_error("check sum of the length");
    }
    if (bytes.size() < 16 + length) throw std::runtime_error("half a record");
    const std::string_view data = bytes.substr(12, length);
    if (number_at<std::uint32_t>(bytes, 12 + length) != slow_masked(data)) {
      throw std::runtime_error("check sum of the data");
    }
    records.emplace_back(data);
    bytes.remove_prefix(16 + length);
  }
  return records;
}

struct Field {
  std::uint64_t number = 0;  // varints and fixed widths
  std::string bytes;
};
using Message = std::multimap<int, Field>;

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(0));
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return value;
  }
}

Message message_of(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const std::uint64_t tag = take_varint(bytes);
    Field field;
    std::size_t width = 0;
    switch (tag & 7) {
      case 0:
        field.number = take_varint(bytes);
        break;
      case 1:
        field.number = number_at<std::uint64_t>(bytes, 0);
        width = 8;
        break;
      case 2:
        width = take_varint(bytes);
        field.bytes = bytes.substr(0, width);
        break;
      case 5:
        field.number = number_at<std::uint32_t>(bytes, 0);
        width = 4;
        break;
      default:
        throw std::runtime_error("wire type");
    }
    bytes.remove_prefix(width);
    message.emplace(static_cast<int>(tag >> 3), std::move(field));
  }
  return message;
}

const Field& only(const Message& message, int field) {
  if (message.count(field) != 1) throw std::runtime_error("field " + std::to_string(field));
  return message.find(field)->second;
}

struct Point {
  std::int64_t step = 0;
  double wall_time = 0.0;
  float value = 0.0F;
};

struct Events {
  std::string version;
  std::map<std::string, std::vector<Point>> scalars;
  std::map<std::string, std::string> texts;
};

Events events_of(const std::string& bytes) {
  Events events;
  for (const std::string& record : records_of(bytes)) {
    const Message event = message_of(record);
    if (event.contains(3)) events.version = only(event, 3).bytes;
    if (!event.contains(5)) continue;
    const Message value = message_of(only(message_of(only(event, 5).bytes), 1).bytes);
    const std::string tag = only(value, 1).bytes;
    if (value.contains(2)) {
      events.scalars[tag].push_back(
          {event.contains(2) ? static_cast<std::int64_t>(only(event, 2).number) : 0,
           std::bit_cast<double>(only(event, 1).number),
           std::bit_cast<float>(static_cast<std::uint32_t>(only(value, 2).number))});
      continue;
    }
    const Message metadata = message_of(only(value, 9).bytes);
    EXPECT_EQ(only(message_of(only(metadata, 1).bytes), 1).bytes, "text");
    const Message tensor = message_of(only(value, 8).bytes);
    EXPECT_EQ(only(tensor, 1).number, 7U);  // strings
    EXPECT_EQ(only(message_of(only(message_of(only(tensor, 2).bytes), 2).bytes), 1).number, 1U);
    events.texts[tag] = only(tensor, 8).bytes;
  }
  return events;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Board : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("ridgeline_board_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child(arguments, folder_).finish();
  }
  // Of the only file in a folder.
  [[nodiscard]] Events events_in(const fs::path& folder) const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) files.push_back(entry);
    if (files.size() != 1) throw std::runtime_error(std::to_string(files.size()) + " files");
    EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents."));
    return events_of(contents(files[0]));
  }
  fs::path folder_;
};

// --- Records and messages ---------------------------------------------------------------------

TEST(BoardWire, CheckSumsAreThoseOfTheStandard) {
  // RFC 3720, B.4, and the check value of the polynomial.
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(""), 0U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
  EXPECT_EQ(masked_crc32c(rising), slow_masked(rising));
}

TEST(BoardWire, NumbersAreEncodedAsProtocolBuffersDo) {
  EXPECT_EQ(WireMessage().integer(1, 150).text(), std::string("\x08\x96\x01"));
  EXPECT_EQ(WireMessage().integer(1, 0).text(), std::string("\x08\0", 2));
  EXPECT_EQ(WireMessage().integer(2, 127).text(), std::string("\x10\x7f"));
  EXPECT_EQ(WireMessage().integer(2, 128).text(), std::string("\x10\x80\x01"));
  EXPECT_EQ(WireMessage().integer(16, 1).text(), std::string("\x80\x01\x01"));
  EXPECT_EQ(WireMessage().integer(1, -1).text(), "\x08" + std::string(9, '\xff') + "\x01");
  EXPECT_EQ(WireMessage().bytes(2, "testing").text(), "\x12\x07testing");
  EXPECT_EQ(WireMessage().real32(3, 1.0F).text(), std::string("\x1d\0\0\x80\x3f", 5));
  EXPECT_EQ(WireMessage().real64(1, 1.0).text(), std::string("\x09\0\0\0\0\0\0\xf0\x3f", 9));
}

TEST(BoardWire, ARecordHasItsLengthAndTwoCheckSums) {
  const std::string record = framed("some data");
  EXPECT_EQ(record.size(), 16U + 9U);
  EXPECT_EQ(records_of(record + framed("") + framed("more")),
            (std::vector<std::string>{"some data", "", "more"}));
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string broken = record;
    broken[i] = static_cast<char>(broken[i] ^ 1);
    EXPECT_THROW((void)records_of(broken), std::runtime_error) << "byte " << i;
  }
}

// --- Files ------------------------------------------------------------------------------------

TEST_F(Board, AFileTellsWhatWasWritten) {
  const fs::path folder = folder_ / "a/b";
  EventFile file(folder);
  file.text("hyperparameters", "| a | b |");
  file.scalar("loss/train", 0, 1e9, 0.5);
  file.scalar("loss/train", 300, 1e9 + 1.5, 0.1);
  file.scalar("rate", std::int64_t{1} << 40, 1e9, -1e30);
  // The head is there at once; the rest when it was flushed, however the program ends.
  EXPECT_EQ(events_in("a/b").version, "brain.Event:2");
  file.flush();
  const Events events = events_in("a/b");
  EXPECT_EQ(events.texts.at("hyperparameters"), "| a | b |");
  const std::vector<Point>& losses = events.scalars.at("loss/train");
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[0].step, 0);
  EXPECT_EQ(losses[1].step, 300);
  EXPECT_EQ(losses[1].wall_time, 1e9 + 1.5);
  EXPECT_EQ(losses[1].value, 0.1F);
  EXPECT_EQ(events.scalars.at("rate").at(0).step, std::int64_t{1} << 40);
  EXPECT_EQ(events.scalars.at("rate").at(0).value, -1e30F);
  // Another file in the same folder has its own name.
  const EventFile other(folder);
  EXPECT_NE(other.path(), file.path());
}

TEST_F(Board, AFullDiskIsToldOnceAndLeavesWholeRecords) {
  EventFile file(folder_);
  file.scalar("loss", 1, 1e9, 0.5);
  file.flush();
  ASSERT_TRUE(file.trouble().empty());
  {
    const SmallDisk disk(1000);
    for (int i = 0; i < 100; ++i) file.scalar("loss", 2 + i, 1e9, 0.5);
    file.flush();
  }
  EXPECT_NE(file.trouble().find("cannot be written"), std::string::npos) << file.trouble();
  file.scalar("loss", 200, 1e9, 0.5);
  file.flush();
  EXPECT_EQ(events_in("").scalars.at("loss").size(), 1U);
}

TEST_F(Board, AFolderThatCannotBeWrittenIsRefusedAndAGoodOneLeftAsItWas) {
  check_event_folder(folder_ / "new/deep");
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  std::ofstream(folder_ / "file") << "text";
  for (const char* name : {"file", "file/below"}) {
    try {
      check_event_folder(folder_ / name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST_F(Board, ReadingsStandAtTheStepThatHadEnded) {
  RunBoard board(folder_, 1e9);
  board.step_ended(10, 1.0);
  board.step_ended(20, 2.0);
  board.readings(std::vector<Reading>{{0.5, "cpu", "cpu_mhz", 1.0}, {1.5, "cpu", "cpu_mhz", 2.0}});
  board.step_ended(30, 3.0);
  board.readings(std::vector<Reading>{{2.5, "cpu", "cpu_mhz", 3.0}, {9.0, "cpu", "cpu_mhz", 4.0}});
  board.flush();
  const Events events = events_in("");
  std::vector<std::int64_t> steps;
  for (const Point& point : events.scalars.at("telemetry/cpu/cpu_mhz")) {
    steps.push_back(point.step);
    EXPECT_GT(point.wall_time, 1e9);
  }
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 10, 20, 30}));
}

TEST(BoardNames, FoldersOfCandidatesDiffer) {
  Subject one;
  one.work.model = "mlp";
  one.work.batch = 64;
  one.work.image = {1, 28, 28};
  one.executor.backend = "cudnn";
  one.executor.device = "cuda:0";
  Subject adam = one;
  adam.work.optimizer = "adam";
  EXPECT_EQ(board_names(std::vector<Subject>{one, adam}),
            (std::vector<std::string>{"mlp-cudnn-b64-fp32-1x28x28-cuda_0",
                                      "mlp-cudnn-b64-fp32-1x28x28-cuda_0-2"}));
}

// --- Commands ---------------------------------------------------------------------------------

TEST_F(Board, TrainWritesTheValuesOfItsJson) {
  const Outcome outcome =
      run("train mlp --data synthetic:1x8x8:4:200 --epochs 3 --batch 32 --threads 1 --store none "
          "--json "
          "--schedule cosine --tensorboard runs/one --tensorboard-every 2 --telemetry 100");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json told = Json::parse(outcome.out);
  const Events events = events_in("runs/one");
  const std::map<std::string, std::string> tags = {
      {"loss/train", "train_loss"},
      {"accuracy/train", "train_accuracy"},
      {"loss/test", "test_loss"},
      {"accuracy/test", "test_accuracy"},
      {"rate/samples_per_second", "samples_per_second"},
      {"time/data_wait", "data_wait_seconds"},
      {"learning_rate", "learning_rate"}};
  for (const auto& [tag, key] : tags) {
    ASSERT_TRUE(events.scalars.contains(tag)) << tag;
    const std::vector<Point>& points = events.scalars.at(tag);
    ASSERT_EQ(points.size(), 3U) << tag;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(points[i].step, told["epochs"][i]["epoch"].get<std::int64_t>());
      EXPECT_EQ(points[i].value, told["epochs"][i][key].get<float>()) << tag;
    }
  }
  const std::vector<Point>& losses = events.scalars.at("loss/step");
  EXPECT_EQ(losses.front().step, 2);
  EXPECT_EQ(losses.back().step, told["steps"].get<std::int64_t>());
  EXPECT_TRUE(events.scalars.contains("telemetry/cpu/rss_bytes"));
  const std::string& settings = events.texts.at("hyperparameters");
  for (const char* row : {"| model | mlp |", "| batch | 32 |", "| epochs | 3 |", "| backend | "}) {
    EXPECT_NE(settings.find(row), std::string::npos) << row << settings;
  }
}

TEST_F(Board, TrainGoesOnWhenTheDiskIsFullAndRefusesAFile) {
  std::ofstream(folder_ / "file") << "text";
  const Outcome refused = run("train mlp --data synthetic:1x8x8:4:200 --tensorboard file");
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("file: event files cannot be written"), std::string::npos)
      << refused.err;
  const SmallDisk disk(700);
  const Outcome outcome =
      run("train mlp --data synthetic:1x8x8:4:200 --epochs 3 --batch 32 --threads 1 --store none "
          "--tensorboard runs --telemetry 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::string words = "no more TensorBoard events are written";
  const std::size_t first = outcome.err.find(words);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(words, first + 1), std::string::npos) << outcome.err;
}

TEST_F(Board, BenchWritesEverySampleIntoAFolderForEachCandidate) {
  const Outcome outcome =
      run("bench mlp --backend native,reference --batch 8 --warmup 2 --iterations 6 --threads 1 "
          "--no-split --telemetry 0 --store none --json --tensorboard runs");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* backend : {"native", "reference"}) {
    const fs::path folder =
        fs::path("runs") / ("mlp-" + std::string(backend) + "-b8-fp32-1x28x28-cpu");
    const Events events = events_in(folder);
    const std::vector<Point>& times = events.scalars.at("time/step_seconds");
    const std::vector<Point>& rates = events.scalars.at("rate/samples_per_second");
    ASSERT_EQ(times.size(), 6U);
    ASSERT_EQ(rates.size(), 6U);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(rates[i].value * times[i].value, 8.0, 1e-4);
      if (i > 0) {
        EXPECT_LT(times[i - 1].step, times[i].step);
      }
    }
    EXPECT_NE(events.texts.at("hyperparameters").find(backend), std::string::npos);
  }
}

}  // namespace
}  // namespace ridgeline
