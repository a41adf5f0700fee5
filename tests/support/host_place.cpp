#include "support/host_place.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ridgeline::testing {
namespace {

void transform_blocks(const ImageJob& job, const std::uint8_t* parts, std::uint8_t* scratch) {
  const auto* starts = reinterpret_cast<const std::uint32_t*>(parts + job.starts);
  const auto* coefficients = reinterpret_cast<const std::uint32_t*>(parts + job.coefficients);
  for (int c = 0; c < job.channels; ++c) {
    const BlockChannel& channel = job.channel[c];
    for (int at = 0; at < channel.columns * channel.rows; ++at) {
      const auto block = static_cast<std::size_t>(channel.first_block + at);
      std::int32_t numbers[kBlockPixels] = {};
      for (std::uint32_t i = block_begin(starts[block]); i < block_end(starts[block]); ++i) {
        image_steps::put_coefficient(coefficients[i], channel.quantisation, numbers);
      }
      for (int i = 0; i < kBlockSide; ++i) {
        image_steps::inverse_transform<image_steps::kColumnShift>(numbers + i, kBlockSide);
      }
      for (int row = 0; row < kBlockSide; ++row) {
        std::int32_t* begin = numbers + row * kBlockSide;
        image_steps::inverse_transform<image_steps::kRowShift>(begin, 1);
        const int y = at / channel.columns * kBlockSide + row;
        const int x = at % channel.columns * kBlockSide;
        for (int i = 0; i < kBlockSide; ++i) {
          scratch[channel.plane + static_cast<std::size_t>(y * channel.stride() + x + i)] =
              image_steps::to_byte(begin[i] + 128);
        }
      }
    }
  }
}

}  // namespace

void finish_on_host(ImageJob job, const std::uint8_t* parts, int channels, std::uint8_t* dst) {
  std::vector<std::uint8_t> memory(place_in_scratch(job, 0));
  std::uint8_t* scratch = memory.data();
  transform_blocks(job, parts, scratch);
  for (int y = 0; y < job.area_height; ++y) {
    for (int x = 0; x < job.area_width; ++x) {
      image_steps::colour_at(job, scratch, x, y,
                             scratch + job.pixels + static_cast<std::size_t>(y) * job.pixel_stride +
                                 std::size_t{4} * static_cast<std::size_t>(x));
    }
  }
  const auto columns = image_steps::axis_view(
      reinterpret_cast<const std::int32_t*>(parts + job.axis_x), job.width, job.most_x);
  const auto rows = image_steps::axis_view(
      reinterpret_cast<const std::int32_t*>(parts + job.axis_y), job.height, job.most_y);
  const auto stride = std::size_t{4} * static_cast<std::size_t>(job.width);
  for (int y = 0; y < job.kept_rows; ++y) {
    const std::uint8_t* from =
        scratch + job.pixels + static_cast<std::size_t>(job.first_row + y) * job.pixel_stride;
    for (int x = 0; x < job.width; ++x) {
      image_steps::resize_pixel(columns, x, 0, from, 4,
                                scratch + job.between + static_cast<std::size_t>(y) * stride +
                                    std::size_t{4} * static_cast<std::size_t>(x));
    }
  }
  const auto plane = static_cast<std::size_t>(job.width * job.height);
  for (int y = 0; y < job.height; ++y) {
    for (int x = 0; x < job.width; ++x) {
      std::uint8_t rgb[3] = {};
      image_steps::resize_pixel(
          rows, y, job.first_row,
          scratch + job.between + std::size_t{4} * static_cast<std::size_t>(x), stride, rgb);
      const std::size_t at = image_steps::place_shown(job.orientation, x, y, job.width, job.height);
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
        dst[c * plane + at] = rgb[c];
      }
    }
  }
}

void HostPlace::set_up(const Use& use) {
  use_ = use;
  makers_ = std::vector<ImageJobMaker>(static_cast<std::size_t>(use.workers));
  slots_.resize(use.slots);
}

void HostPlace::begin(std::size_t slot) {
  slots_[slot].rows.assign(use_.rows, {});
  for (Row& row : slots_[slot].rows) row.pixels.resize(use_.sample_bytes);
  slots_[slot].refused = slots_[slot].sent = false;
}

bool HostPlace::take(const PlaceRow& at, const StoredImage& image,
                     const TransformRequest& request) {
  ImageJobMaker& maker = makers_[static_cast<std::size_t>(at.worker)];
  if (!maker.make(image, request, ImageForm::blocks)) return false;
  Row& row = slots_[at.slot].rows[at.row];
  row.parts.resize(maker.part_bytes());
  row.job = maker.put(row.parts.data(), 0);
  row.channels = request.channels;
  row.taken = true;
  ++taken;
  return true;
}

std::span<std::uint8_t> HostPlace::room(const PlaceRow& at) {
  return slots_[at.slot].rows[at.row].pixels;
}

std::vector<std::size_t> HostPlace::send(std::size_t number, std::size_t rows) {
  Slot& slot = slots_[number];
  const auto refused = static_cast<std::size_t>(std::max(refused_row, 0));
  if (refused_row >= 0 && refused < rows && !slot.refused && slot.rows[refused].taken) {
    slot.refused = true;
    slot.rows[refused].taken = false;
    return {refused};
  }
  slot.batch.clear();
  for (std::size_t i = 0; i < rows; ++i) {
    Row& row = slot.rows[i];
    if (row.taken) finish_on_host(row.job, row.parts.data(), row.channels, row.pixels.data());
    slot.batch.insert(slot.batch.end(), row.pixels.begin(), row.pixels.end());
  }
  slot.sent = true;
  return {};
}

void HostPlace::wait(std::size_t slot) { EXPECT_TRUE(slots_[slot].sent); }

void HostPlace::deliver(std::size_t slot, std::size_t rows, std::byte* dst) {
  EXPECT_EQ(slots_[slot].batch.size(), rows * use_.sample_bytes);
  const auto bytes = std::as_bytes(std::span(slots_[slot].batch));
  std::copy(bytes.begin(), bytes.end(), dst);
}

}  // namespace ridgeline::testing
