#include "data/published.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

const std::vector<PublishedDataset>& all_published() {
  static const std::vector<PublishedDataset> all = {
      {"mnist",
       "https://ossci-datasets.s3.amazonaws.com/mnist/",
       {{"train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
        {"train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"},
        {"t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"},
        {"t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"}},
       ""},
      {"fashion-mnist",
       "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
       {{"train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
        {"train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"},
        {"t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"},
        {"t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"}},
       ""},
      {"cifar10",
       "https://www.cs.toronto.edu/~kriz/",
       {{"cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"}},
       "cifar-10-batches-bin"},
      {"cifar100",
       "https://www.cs.toronto.edu/~kriz/",
       {{"cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"}},
       "cifar-100-binary"},
      {"tiny-imagenet",
       "http://cs231n.stanford.edu/",
       {{"tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"}},
       "tiny-imagenet-200"},
      {"imagenette",
       "https://s3.amazonaws.com/fast-ai-imageclas/",
       {{"imagenette2-320.tgz", "3df6f0d01a2c9592104656642f5e78a3"}},
       "imagenette2-320"},
  };
  return all;
}

const PublishedDataset& find_published(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PublishedDataset& dataset : all_published()) {
    if (dataset.name == name) return dataset;
    names.push_back(dataset.name);
  }
  const std::string guess = did_you_mean(name, names);
  bad_input("unknown dataset '{}'{} Downloadable: {}", name, guess.empty() ? "." : guess,
            joined(names, ", "));
}

}  // namespace

std::span<const PublishedDataset> published_datasets() { return all_published(); }

fs::path get_dataset(
    std::string_view name, const GetOptions& options,
    const std::function<void(std::string_view, std::int64_t, std::int64_t)>& progress) {
  const PublishedDataset& dataset = find_published(name);
  const fs::path folder = options.folder / dataset.name;
  const bool archive = !dataset.inner.empty();
  std::error_code error;
  if (archive && fs::exists(folder, error)) return folder;

  // Plain files go where the dataset will be; an archive lies beside it until it is unpacked.
  const fs::path downloads = archive ? options.folder : folder;
  const bool made = fs::create_directories(downloads, error);
  if (error) bad_input("{}: cannot be made: {}", downloads.string(), error.message());
  std::string base = options.base.empty() ? std::string(dataset.base) : options.base;
  if (!base.ends_with('/')) base += '/';
  for (const PublishedFile& file : dataset.files) {
    const fs::path path = downloads / file.name;
    try {
      download({base + std::string(file.name), std::string(file.md5)}, path,
               [&](std::int64_t done, std::int64_t total) { progress(file.name, done, total); });
    } catch (const Error&) {
      // An empty folder would be taken for the dataset. Only empty ones can be removed so.
      if (made) fs::remove(downloads, error);
      throw;
    }
    if (!archive) continue;
    unpack(path, folder, dataset.inner);
    fs::remove(path, error);
  }
  return folder;
}

}  // namespace ridgeline
