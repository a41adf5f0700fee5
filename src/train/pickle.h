#pragma once

// Reads the Python pickles in which PyTorch keeps tensors. A pickle is a program: it may name any
// Python function and have it called. This reader calls nothing. It knows the few names that
// tensors need and refuses every other one by name.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

// Values refer to each other by number, so that a pickle nested a million deep needs no recursion,
// and one that contains itself does no harm.
using PickleId = std::uint32_t;

struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    big_integer,  // more than 64 bits; `text` has its bytes
    real,
    text,
    bytes,
    list,
    tuple,
    dict,     // `items`: keys and values in turn
    global,   // one of the known names
    storage,  // `items`: the persistent id: "storage", type, key, place, elements [, view]
    tensor,   // `items`: storage, offset, sizes, strides, ...
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;
  double real = 0.0;
  std::string_view text = {};  // within the pickle; for a storage type its name, "FloatStorage"
  std::vector<PickleId> items = {};
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleId root = 0;
  std::size_t size = 0;  // bytes read: further pickles may follow

  [[nodiscard]] const PickleValue& value(PickleId id) const { return values[id]; }
  [[nodiscard]] const PickleValue& top() const { return values[root]; }
};

// REQUIRES: `bytes` outlives the result. Bad_input naming `where` for what is broken, too large, or
// asks for anything but tensors, dicts, lists, tuples, numbers, text, booleans and None.
[[nodiscard]] Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace ridgeline
