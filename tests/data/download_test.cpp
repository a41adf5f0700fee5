// Fetching datasets: checksums, interrupted downloads, archives; from a server of the test's own.

#include "data/download.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/text_file.h"
#include "data/published.h"
#include "support/http_server.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

const auto kQuiet = [](std::int64_t, std::int64_t) {};

template <typename Body>
std::string failure(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// An archive with these files.
Bytes archive_of(const std::vector<std::pair<std::string, std::string>>& files, bool zip) {
  Bytes bytes(1 << 20);
  std::size_t used = 0;
  archive* writer = archive_write_new();
  if (zip) {
    archive_write_set_format_zip(writer);
  } else {
    archive_write_set_format_ustar(writer);
    archive_write_add_filter_gzip(writer);
  }
  archive_write_open_memory(writer, bytes.data(), bytes.size(), &used);
  for (const auto& [name, text] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, text.data(), text.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

TEST(Digest, KnownValues) {
  const auto of = [](DigestKind kind, const std::string& text) {
    return digest_of(kind, Bytes(text.begin(), text.end()));
  };
  EXPECT_EQ(of(DigestKind::md5, ""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(of(DigestKind::md5, "message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(of(DigestKind::sha256, ""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of(DigestKind::sha256, "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(DigestKind::sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  std::string digits;
  for (int i = 0; i < 8; ++i) digits += "1234567890";
  EXPECT_EQ(of(DigestKind::md5, digits), "57edf4a22be3c955ac49da2e2107b67a");
}

using DigestFile = FileTest;

TEST_F(DigestFile, OfAFileIsThatOfItsBytes) {
  const Bytes bytes = ramp(100'000);
  const auto path = write("bytes", std::string(bytes.begin(), bytes.end()));
  EXPECT_EQ(digest_of_file(DigestKind::sha256, path), digest_of(DigestKind::sha256, bytes));
  EXPECT_EQ(digest_of_file(DigestKind::md5, write("empty", "")),
            "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_THROW((void)digest_of_file(DigestKind::md5, folder_ / "missing"), Error);
}

class Download : public FileTest {
 protected:
  HttpServer server_;
  Bytes content_ = ramp(50000);
  [[nodiscard]] RemoteFile remote(const std::string& name) const {
    return {server_.address() + name, digest_of(DigestKind::md5, content_)};
  }
};

TEST_F(Download, WholeFile) {
  server_.serve("a.bin", content_);
  std::int64_t last = 0;
  download(remote("a.bin"), folder_ / "a.bin",
           [&](std::int64_t done, std::int64_t) { last = done; });
  EXPECT_EQ(digest_of_file(DigestKind::md5, folder_ / "a.bin"),
            digest_of(DigestKind::md5, content_));
  EXPECT_EQ(last, 50000);
  download(remote("a.bin"), folder_ / "a.bin", kQuiet);
  EXPECT_EQ(server_.requests().size(), 1U) << "a file that is there is not fetched again";
}

TEST_F(Download, GoesOnWhereItWasInterrupted) {
  server_.serve("a.bin", content_);
  server_.break_after(20000);
  expect_contains(
      failure([&] { download(remote("a.bin"), folder_ / "a.bin", kQuiet); }),
      {server_.address() + "a.bin", "continues from there", (folder_ / "a.bin").string()});
  EXPECT_FALSE(fs::exists(folder_ / "a.bin"));
  EXPECT_EQ(fs::file_size(folder_ / "a.bin.part"), 20000U);
  server_.break_after(-1);
  download(remote("a.bin"), folder_ / "a.bin", kQuiet);
  EXPECT_EQ(server_.requests(), (std::vector<std::int64_t>{0, 20000}));
  EXPECT_EQ(fs::file_size(folder_ / "a.bin"), 50000U);
  EXPECT_FALSE(fs::exists(folder_ / "a.bin.part"));
}

TEST_F(Download, BeginsAnewWhereTheServerKnowsNoRanges) {
  server_.serve("a.bin", content_);
  server_.allow_ranges(false);
  (void)write("a.bin.part", Bytes(300, 1));
  download(remote("a.bin"), folder_ / "a.bin", kQuiet);
  EXPECT_EQ(fs::file_size(folder_ / "a.bin"), 50000U);
}

TEST_F(Download, WholePartIsTakenAndAWrongOneThrownAway) {
  server_.serve("a.bin", content_);
  (void)write("a.bin.part", content_);
  download(remote("a.bin"), folder_ / "a.bin", kQuiet);
  EXPECT_EQ(fs::file_size(folder_ / "a.bin"), 50000U);
  fs::remove(folder_ / "a.bin");
  (void)write("a.bin.part", Bytes(60000, 7));
  download(remote("a.bin"), folder_ / "a.bin", kQuiet);
  EXPECT_EQ(fs::file_size(folder_ / "a.bin"), 50000U);
}

TEST_F(Download, WrongChecksumRemovesTheFile) {
  Bytes other = content_;
  other[100] ^= 1;
  server_.serve("a.bin", other);
  expect_contains(failure([&] { download(remote("a.bin"), folder_ / "a.bin", kQuiet); }),
                  {"checksum is " + digest_of(DigestKind::md5, other),
                   "not " + digest_of(DigestKind::md5, content_)});
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Download, AbsentFileAndAbsentServer) {
  expect_contains(failure([&] { download(remote("no.bin"), folder_ / "no.bin", kQuiet); }),
                  {"404", "Without a network, fetch", (folder_ / "no.bin").string()});
  EXPECT_TRUE(fs::is_empty(folder_));
  expect_contains(failure([&] {
                    download({"http://127.0.0.1:9/x.bin", ""}, folder_ / "x.bin", kQuiet);
                  }),
                  {"http://127.0.0.1:9/x.bin: cannot be downloaded"});
}

class Unpack : public FileTest {};

TEST_F(Unpack, TarAndZip) {
  for (const bool zip : {false, true}) {
    const fs::path archive = write(
        "a", archive_of({{"top/x.txt", "one"}, {"top/sub/y.txt", "two"}, {"other", "3"}}, zip));
    const fs::path out = folder_ / (zip ? "zip" : "tar");
    unpack(archive, out, "top");
    EXPECT_EQ(read_text(out / "x.txt"), "one");
    EXPECT_EQ(read_text(out / "sub/y.txt"), "two");
    EXPECT_FALSE(fs::exists(out / "other"));
  }
}

TEST_F(Unpack, RefusesWhatIsWrong) {
  const auto refuse = [&](const Bytes& bytes, std::string_view inner) {
    const fs::path archive = write("a", bytes);
    const std::string text = refusal([&] { unpack(archive, folder_ / "out", inner); });
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    fs::remove(archive);
    EXPECT_TRUE(fs::is_empty(folder_)) << text;
    return text;
  };
  expect_contains(refuse(archive_of({{"../evil", "x"}}, false), ""), {"../evil", "leads out"});
  expect_contains(refuse(archive_of({{"a/../../evil", "x"}}, true), ""), {"leads out"});
  expect_contains(refuse(archive_of({{"/abs", "x"}}, false), ""), {"leads out"});
  expect_contains(refuse(archive_of({{"a/b", "x"}}, false), "c"), {"no files below c"});
  expect_contains(refuse(ramp(2000), ""), {"archive"});
  Bytes cut =
      archive_of({{"a/b", std::string(30000, 'x')}, {"a/c", std::string(30000, 'y')}}, false);
  cut.resize(cut.size() / 2);
  expect_contains(refuse(cut, ""), {"truncated"});
}

class GetDataset : public Download {};

TEST_F(GetDataset, NamedDatasetsComeFromTheGivenAddress) {
  // The true checksums are those of the true files, so that other contents are refused.
  for (const char* part : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"}) {
    server_.serve(part, content_);
  }
  const auto progress = [](std::string_view, std::int64_t, std::int64_t) {};
  expect_contains(failure([&] {
                    (void)get_dataset("mnist", {folder_, server_.address()}, progress);
                  }),
                  {"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"});
  expect_contains(refusal([&] {
                    (void)get_dataset("cifar", {folder_, ""}, progress);
                  }),
                  {"unknown dataset 'cifar'", "cifar10"});
}

TEST(Published, EveryChecksumIsOne) {
  for (const PublishedDataset& dataset : published_datasets()) {
    EXPECT_TRUE(dataset.base.ends_with('/'));
    for (const PublishedFile& file : dataset.files) EXPECT_EQ(file.md5.size(), 32U) << file.name;
  }
}

}  // namespace
}  // namespace ridgeline
