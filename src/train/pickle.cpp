#include "train/pickle.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"

namespace ridgeline {
namespace {

using Kind = PickleValue::Kind;

// A network of a thousand tensors needs some ten thousand values.
constexpr std::size_t kMostValues = std::size_t{1} << 20;
constexpr std::size_t kMostItems = std::size_t{1} << 22;  // in all lists, tuples and dicts together
constexpr std::size_t kLongestCall = 16;                  // arguments

// What a pickle may ask for.
enum class Callable : std::int64_t {
  tensor,
  parameter,
  parameter_class,
  ordered_dict,
  storage,
  name_space
};

struct KnownName {
  std::string_view module, name;
  Callable callable;
};
constexpr std::array<KnownName, 16> kKnownNames = {{
    {"argparse", "Namespace", Callable::name_space},
    {"torch._utils", "_rebuild_tensor_v2", Callable::tensor},
    {"torch._utils", "_rebuild_tensor", Callable::tensor},
    {"torch._utils", "_rebuild_parameter", Callable::parameter},
    {"torch.nn.parameter", "Parameter", Callable::parameter_class},
    {"collections", "OrderedDict", Callable::ordered_dict},
    {"torch", "DoubleStorage", Callable::storage},
    {"torch", "FloatStorage", Callable::storage},
    {"torch", "HalfStorage", Callable::storage},
    {"torch", "BFloat16Storage", Callable::storage},
    {"torch", "LongStorage", Callable::storage},
    {"torch", "IntStorage", Callable::storage},
    {"torch", "ShortStorage", Callable::storage},
    {"torch", "CharStorage", Callable::storage},
    {"torch", "ByteStorage", Callable::storage},
    {"torch", "BoolStorage", Callable::storage},
}};

constexpr std::size_t kMostCharacters = 80;  // of a name in a message

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where) {
    none_ = add({.kind = Kind::none});
    no_ = add({.kind = Kind::boolean, .integer = 0});
    yes_ = add({.kind = Kind::boolean, .integer = 1});
  }

  Pickle run() {
    while (!stopped_) step(take_number<std::uint8_t>());
    pickle_.root = pop();
    pickle_.size = at_;
    return std::move(pickle_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: broken pickle: {} (byte {})", where_,
              fmt::format(format, std::forward<Args>(args)...), at_);
  }
  [[noreturn]] void refuse(std::string_view name) const {
    bad_input(
        "{}: asks for {}: refused, only tensors, dicts, lists, tuples, numbers and text are read. "
        "In Python, torch.save(model.state_dict(), ...) writes nothing else",
        where_, printable(name, kMostCharacters));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) wrong("it ends too early");
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, count);
    at_ += count;
    return text;
  }
  template <typename T>
  T take_number() {
    T number;
    std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
    return number;
  }
  std::string_view take_line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                bytes_.size() - at_);
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) wrong("it ends too early");
    at_ += end + 1;
    return rest.substr(0, end);
  }

  PickleId add(PickleValue value) {
    if (pickle_.values.size() == kMostValues) wrong("more than {} values", kMostValues);
    pickle_.values.push_back(std::move(value));
    return static_cast<PickleId>(pickle_.values.size() - 1);
  }
  void push(PickleId id) {
    if (stack_.size() == kMostValues) wrong("more than {} values on the stack", kMostValues);
    stack_.push_back(id);
  }
  void push_new(PickleValue value) { push(add(std::move(value))); }
  void push_text(Kind kind, std::string_view text) { push_new({.kind = kind, .text = text}); }
  void push_integer(std::int64_t number) { push_new({.kind = Kind::integer, .integer = number}); }

  PickleId pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) {
      wrong("a value is missing on the stack");
    }
    const PickleId id = stack_.back();
    stack_.pop_back();
    return id;
  }
  PickleValue& top_value() {
    const PickleId id = pop();
    stack_.push_back(id);
    return pickle_.values[id];
  }
  std::vector<PickleId> pop_to_mark() {
    if (marks_.empty()) wrong("a mark is missing on the stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleId> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void spend(std::size_t items) {
    items_ += items;
    if (items_ > kMostItems) wrong("more than {} items", kMostItems);
  }

  void push_tuple(std::size_t count) {
    PickleValue tuple{.kind = Kind::tuple};
    spend(count);
    for (std::size_t i = 0; i < count; ++i) tuple.items.push_back(pop());
    std::reverse(tuple.items.begin(), tuple.items.end());
    push_new(std::move(tuple));
  }
  void push_marked(Kind kind) {
    PickleValue value{.kind = kind, .items = pop_to_mark()};
    spend(value.items.size());
    if (kind == Kind::dict && value.items.size() % 2 != 0) wrong("a key has no value");
    push_new(std::move(value));
  }
  void extend(Kind kind, const std::vector<PickleId>& items) {
    PickleValue& target = top_value();
    if (target.kind != kind) {
      wrong("items for a {}, but there is none", kind == Kind::dict ? "dict" : "list");
    }
    if (kind == Kind::dict && items.size() % 2 != 0) wrong("a key has no value");
    spend(items.size());
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  void put(std::uint64_t slot) {
    if (memo_.size() == kMostValues) wrong("more than {} remembered values", kMostValues);
    const PickleId id = pop();
    stack_.push_back(id);
    memo_[slot] = id;
  }
  void get(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) wrong("value {} was never remembered", slot);
    push(found->second);
  }

  void push_long(std::uint64_t count) {
    const std::string_view text = take(count);
    if (count > 8) {
      push_text(Kind::big_integer, text);
      return;
    }
    std::uint64_t bits = 0;
    std::memcpy(&bits, text.data(), count);
    // Two's complement of as many bytes as there are.
    const auto unused = static_cast<int>(64 - 8 * count);
    push_integer(count == 0 ? 0 : static_cast<std::int64_t>(bits << unused) >> unused);
  }
  void push_real() {
    std::uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    push_new({.kind = Kind::real, .real = std::bit_cast<double>(bits)});
  }

  void push_global(std::string_view module, std::string_view name) {
    for (const KnownName& known : kKnownNames) {
      if (known.module != module || known.name != name) continue;
      push_new({.kind = Kind::global,
                .integer = static_cast<std::int64_t>(known.callable),
                .text = known.name});
      return;
    }
    refuse(fmt::format("{}.{}", module, name));
  }
  void push_stack_global() {
    const PickleId name = pop(), module = pop();
    const PickleValue &n = pickle_.values[name], &m = pickle_.values[module];
    if (n.kind != Kind::text || m.kind != Kind::text) wrong("a name that is no text");
    push_global(m.text, n.text);
  }

  // A class or function with its arguments.
  void call(bool as_class) {
    const PickleId arguments = pop(), function = pop();
    const PickleValue &f = pickle_.values[function], &a = pickle_.values[arguments];
    if (f.kind != Kind::global || a.kind != Kind::tuple) wrong("a call of what is no function");
    const auto callable = static_cast<Callable>(f.integer);
    const bool is_class = callable == Callable::parameter_class || callable == Callable::name_space;
    if (as_class != is_class) {
      if (callable != Callable::ordered_dict) refuse(fmt::format("a call of {}", f.text));
    }
    if (a.items.size() > kLongestCall) wrong("{} with {} arguments", f.text, a.items.size());
    switch (callable) {
      case Callable::tensor:
        if (a.items.size() < 4) wrong("{} with {} arguments", f.text, a.items.size());
        spend(a.items.size());
        push_new({.kind = Kind::tensor, .items = a.items});
        return;
      case Callable::parameter:
      case Callable::parameter_class:
        if (a.items.empty() || pickle_.values[a.items[0]].kind != Kind::tensor) {
          wrong("a parameter without a tensor");
        }
        push(a.items[0]);
        return;
      case Callable::ordered_dict:
        push_ordered_dict(a.items);
        return;
      case Callable::name_space:  // options of a training script; no tensors are looked for in it
        push_new({.kind = Kind::dict});
        return;
      case Callable::storage:
        refuse(fmt::format("a call of torch.{}", f.text));
    }
  }
  // Empty, or from a list of pairs, as Python 2 wrote it.
  void push_ordered_dict(const std::vector<PickleId>& arguments) {
    PickleValue dict{.kind = Kind::dict};
    if (!arguments.empty()) {
      const PickleValue& pairs = pickle_.values[arguments[0]];
      if (arguments.size() != 1 || pairs.kind != Kind::list) wrong("an OrderedDict of no pairs");
      spend(2 * pairs.items.size());
      for (const PickleId id : pairs.items) {
        const PickleValue& pair = pickle_.values[id];
        const bool is_pair =
            (pair.kind == Kind::list || pair.kind == Kind::tuple) && pair.items.size() == 2;
        if (!is_pair) wrong("an OrderedDict of no pairs");
        dict.items.insert(dict.items.end(), pair.items.begin(), pair.items.end());
      }
    }
    push_new(std::move(dict));
  }
  // Attributes of an object: PyTorch adds "_metadata" to state dicts and flags to parameters;
  // neither is needed.
  void drop_attributes() {
    (void)pop();
    const Kind kind = top_value().kind;
    if (kind != Kind::dict && kind != Kind::tensor) wrong("attributes for what has none");
  }

  void push_storage() {
    const PickleValue& id = pickle_.values[pop()];
    const bool is_storage = id.kind == Kind::tuple && id.items.size() >= 5 &&
                            id.items.size() <= kLongestCall &&
                            pickle_.values[id.items[0]].kind == Kind::text &&
                            pickle_.values[id.items[0]].text == "storage";
    if (!is_storage) wrong("a persistent id that is no storage");
    spend(id.items.size());
    push_new({.kind = Kind::storage, .items = id.items});
  }

  // One instruction; the letters are those of Python's pickletools.
  void step(std::uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const auto version = take_number<std::uint8_t>(); version > 5) {
          wrong("protocol {} is unknown", version);
        }
        return;
      case 0x95:  // FRAME
        (void)take(8);
        return;
      case '.':  // STOP
        stopped_ = true;
        return;
      case '(':  // MARK
        if (marks_.size() == kMostValues) wrong("more than {} marks", kMostValues);
        marks_.push_back(stack_.size());
        return;
      case '0':  // POP, of a value or of a mark
        if (!marks_.empty() && marks_.back() == stack_.size()) {
          marks_.pop_back();
        } else {
          (void)pop();
        }
        return;
      case '1':  // POP_MARK
        (void)pop_to_mark();
        return;
      case '2': {  // DUP
        const PickleId id = pop();
        push(id);
        push(id);
        return;
      }
      case 'N':
        return push(none_);
      case 0x88:
        return push(yes_);
      case 0x89:
        return push(no_);
      case 'J':  // BININT
        return push_integer(take_number<std::int32_t>());
      case 'K':
        return push_integer(take_number<std::uint8_t>());
      case 'M':
        return push_integer(take_number<std::uint16_t>());
      case 0x8A:  // LONG1
        return push_long(take_number<std::uint8_t>());
      case 'G':  // BINFLOAT
        return push_real();
      case 'X':  // BINUNICODE and its relatives
        return push_text(Kind::text, take(take_number<std::uint32_t>()));
      case 0x8C:
        return push_text(Kind::text, take(take_number<std::uint8_t>()));
      case 0x8D:
        return push_text(Kind::text, take(take_number<std::uint64_t>()));
      case 'T':  // BINSTRING: Python 2's text
        return push_text(Kind::text, take(take_number<std::uint32_t>()));
      case 'U':
        return push_text(Kind::text, take(take_number<std::uint8_t>()));
      case 'B':  // BINBYTES
        return push_text(Kind::bytes, take(take_number<std::uint32_t>()));
      case 'C':
        return push_text(Kind::bytes, take(take_number<std::uint8_t>()));
      case ']':
        return push_new({.kind = Kind::list});
      case 'l':
        return push_marked(Kind::list);
      case 'a': {  // APPEND
        const PickleId item = pop();
        return extend(Kind::list, {item});
      }
      case 'e':  // APPENDS
        return extend(Kind::list, pop_to_mark());
      case ')':
        return push_new({.kind = Kind::tuple});
      case 't':
        return push_marked(Kind::tuple);
      case 0x85:
      case 0x86:
      case 0x87:
        return push_tuple(code - 0x84U);
      case '}':
        return push_new({.kind = Kind::dict});
      case 'd':
        return push_marked(Kind::dict);
      case 's': {  // SETITEM
        const PickleId item = pop(), key = pop();
        return extend(Kind::dict, {key, item});
      }
      case 'u':  // SETITEMS
        return extend(Kind::dict, pop_to_mark());
      case 'q':  // BINPUT
        return put(take_number<std::uint8_t>());
      case 'r':
        return put(take_number<std::uint32_t>());
      case 0x94:  // MEMOIZE
        return put(memo_.size());
      case 'h':  // BINGET
        return get(take_number<std::uint8_t>());
      case 'j':
        return get(take_number<std::uint32_t>());
      case 'c': {  // GLOBAL
        const std::string_view module = take_line();
        return push_global(module, take_line());
      }
      case 0x93:
        return push_stack_global();
      case 'R':  // REDUCE
        return call(false);
      case 0x81:  // NEWOBJ
        return call(true);
      case 'b':  // BUILD
        return drop_attributes();
      case 'Q':  // BINPERSID
        return push_storage();
      default:
        wrong("instruction 0x{:02x} is unknown or not needed for tensors", code);
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool stopped_ = false;
  Pickle pickle_;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleId> memo_;
  std::size_t items_ = 0;
  PickleId none_, no_, yes_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where) {
  return Reader(bytes, where).run();
}

}  // namespace ridgeline
