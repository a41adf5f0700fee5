// How many images a second a loader brings to a device, without any training.
//
//   batches DECODER FOLDER [SIDE [BATCH [WORKERS [SECONDS]]]]
//   batches difference:DECODER FOLDER [SIDE]
//
// DECODER is one of `train --decoder`. Random crops of FOLDER's training images, shuffled; with
// `cpu` batches are staged as training stages them. Prints images a second of the second half. Or
// how far the pixels of up to 512 images, as evaluation sees them, are from libjpeg-turbo's: mean
// and largest difference in grey levels.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "data/catalog.h"
#include "devices/image_place.h"

namespace ridgeline {
namespace {

Decoder decoder_named(const std::string& name) {
  for (std::size_t i = 0; i < kDecoderNames.size(); ++i) {
    if (kDecoderNames[i] == name) return static_cast<Decoder>(i);
  }
  bad_input("unknown decoder {}", name);
}

double images_a_second(Loader& loader, Device& device, std::size_t batch_bytes, double seconds) {
  const DeviceMemory memory(device, batch_bytes);
  std::int64_t images = 0, epoch = 0;
  Clock::time_point start = Clock::now();
  const Clock::time_point begin = start;
  bool warm = false;
  loader.start_epoch(epoch);
  while (seconds_since(begin) < seconds) {
    const std::optional<Batch> batch = loader.next();
    if (!batch) {
      loader.start_epoch(++epoch);
      continue;
    }
    if (batch->place != nullptr) {
      batch->place->deliver(batch->slot, static_cast<std::size_t>(batch->rows), memory.data());
    } else {
      device.stage(memory.data(), batch->pixels.data(), batch->pixels.size());
    }
    device.synchronize();
    images += batch->rows;
    if (!warm && seconds_since(begin) > seconds / 2) {
      warm = true;
      images = 0;
      start = Clock::now();
    }
  }
  return static_cast<double>(images) / seconds_since(start);
}

void print_difference(const Dataset& data, Decoder decoder, Device& device) {
  const Dataset some = limit(data, 512);
  const LoaderOptions options{.batch = std::min<std::int64_t>(64, some.count()), .workers = 4};
  Loader host(some, options);
  const auto loader = make_loader(some, options, decoder, device);
  host.start_epoch(0);
  loader->start_epoch(0);
  double sum = 0.0, values = 0.0;
  int most = 0;
  while (const std::optional<Batch> expected = host.next()) {
    const std::optional<Batch> batch = loader->next();
    std::vector<std::uint8_t> pixels(batch->pixels.begin(), batch->pixels.end());
    if (batch->place != nullptr) {
      pixels.resize(expected->pixels.size());
      const DeviceMemory memory(device, pixels.size());
      batch->place->deliver(batch->slot, static_cast<std::size_t>(batch->rows), memory.data());
      device.download(pixels.data(), memory.data(), pixels.size());
      device.synchronize();
    }
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const int difference = std::abs(int{pixels[i]} - int{expected->pixels[i]});
      sum += difference;
      most = std::max(most, difference);
    }
    values += static_cast<double>(pixels.size());
  }
  std::printf("%.4f %d\n", sum / values, most);
}

int run(int argc, char** argv) {
  if (argc < 3) bad_input("batches [difference:]DECODER FOLDER [SIDE [BATCH [WORKERS [SECONDS]]]]");
  const auto number = [&](int at, int usual) { return argc > at ? std::atoi(argv[at]) : usual; };
  const std::string what = argv[1];
  const bool difference = what.starts_with("difference:");
  const Decoder decoder = decoder_named(difference ? what.substr(what.find(':') + 1) : what);
  const int side = number(3, 224);
  const std::unique_ptr<Device> device = make_device(cuda_unavailable().empty() ? "cuda:0" : "cpu");
  if (const std::string reason = refuse(decoder, *device); !reason.empty()) {
    bad_input("{}: {}", argv[1], reason);
  }
  const Split data = load_dataset(argv[2], {.image = {side, side}});
  if (difference) {
    print_difference(data.train, decoder, *device);
    return 0;
  }
  const auto loader = make_loader(data.train,
                                  {.batch = number(4, 128),
                                   .shuffle = true,
                                   .last_batch = LastBatch::drop,
                                   .workers = number(5, 16),
                                   .crop = true},
                                  decoder, *device);
  const std::size_t bytes = static_cast<std::size_t>(number(4, 128)) * data.train.sample_bytes();
  std::printf("%.0f\n", images_a_second(*loader, *device, bytes, number(6, 4)));
  return 0;
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  try {
    return ridgeline::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "batches: %s\n", error.what());
    return 2;
  }
}
