// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/json.hpp>

#include <algorithm>
#include <charconv>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

void add_utf8(unsigned code, std::string& out) {
  const auto add = [&](unsigned byte) { out += static_cast<char>(byte); };
  const auto rest = [&](unsigned shift) { add(0x80U | (code >> shift & 0x3fU)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xc0U | code >> 6U), rest(0);
  if (code < 0x10000) return add(0xe0U | code >> 12U), rest(6), rest(0);
  add(0xf0U | code >> 18U), rest(12), rest(6), rest(0);
}

class Reader {
 public:
  /// `value`: where the value goes; absent: it is not kept.
  explicit Reader(std::string_view text, JsonValue* value = nullptr) : text_(text), root_(value) {}

  /// Where it stopped, and what stands there in JSON.
  std::size_t at() const { return at_; }
  std::string_view expected() const { return expected_; }

  Json read() {
    while (true) {
      skip_space();
      constexpr std::string_view names[] = {
          "a value", "a value or ']'", "a key", "a key or '}'", "':'", "',' or what is open", "the end of the text"};
      expected_ = name_in(names, next_);
      if (at_end()) return next_ == Next::nothing ? Json::valid : Json::cut;
      const Json part = read_part();
      if (part != Json::valid) return part;
    }
  }

 private:
  enum class Next { value, value_or_end, key, key_or_end, colon, comma_or_end, nothing };

  bool at_end() const { return at_ == text_.size(); }
  bool take(char c) {
    const bool found = !at_end() && text_[at_] == c;
    at_ += found;
    return found;
  }
  /// Whether the character is the next one; `cut` at the end of the text.
  Json expect(char c) { return at_end() ? Json::cut : take(c) ? Json::valid : Json::broken; }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }
  Json broken(std::string_view expected) {
    expected_ = expected;
    return Json::broken;
  }
  void value_ends() { next_ = open_.empty() ? Next::nothing : Next::comma_or_end; }

  /// A bracket, a comma, a colon, or a value without parts.
  Json read_part() {
    switch (next_) {
      case Next::colon:
        next_ = Next::value;
        return expect(':');
      case Next::comma_or_end:
        if (!take(',')) return close();
        next_ = open_.back() == '{' ? Next::key : Next::value;
        return Json::valid;
      case Next::key_or_end:
      case Next::key:
        if (next_ == Next::key_or_end && text_[at_] == '}') return close();
        next_ = Next::colon;
        return read_string(root_ == nullptr ? nullptr : &parents_.back()->names.emplace_back());
      case Next::value_or_end:
        if (text_[at_] == ']') return close();
        return read_value();
      case Next::value:
        return read_value();
      case Next::nothing:
        break;
    }
    return Json::broken;
  }

  Json close() {
    const Json closed = expect(open_.back() == '{' ? '}' : ']');
    open_.pop_back();
    if (root_ != nullptr) parents_.pop_back();
    value_ends();
    return closed;
  }

  Json read_value() {
    const char first = text_[at_];
    JsonValue* const value = root_ == nullptr || parents_.empty() ? root_ : &parents_.back()->items.emplace_back();
    if (take('{') || take('[')) {  // a stack of its own: a recursion would end at some depth
      open_ += first;
      next_ = first == '{' ? Next::key_or_end : Next::value_or_end;
      if (value == nullptr) return Json::valid;
      value->kind = first == '{' ? JsonValue::Kind::object : JsonValue::Kind::list;
      parents_.push_back(value);
      return open_.size() > JsonValue::deepest ? broken("less nesting") : Json::valid;
    }
    value_ends();
    if (first == '"') {
      if (value != nullptr) value->kind = JsonValue::Kind::text;
      return read_string(value == nullptr ? nullptr : &value->text);
    }
    if (first == '-' || is_digit(first)) return read_number(value);
    for (const std::string_view literal : {"true", "false", "null"})
      if (literal.front() == first) return read_literal(literal);
    return Json::broken;
  }

  Json read_literal(std::string_view literal) {
    for (const char c : literal)
      if (const Json same = expect(c); same != Json::valid) return same;
    return Json::valid;
  }

  Json read_digits() {
    if (at_end()) return Json::cut;
    const std::size_t begin = at_;
    while (!at_end() && is_digit(text_[at_])) ++at_;
    return at_ > begin ? Json::valid : Json::broken;
  }

  Json read_number(JsonValue* value) {
    const char* const begin = text_.data() + at_;
    take('-');
    Json part = take('0') ? Json::valid : read_digits();  // nothing follows a leading 0
    if (part == Json::valid && take('.')) part = read_digits();
    if (part == Json::valid && (take('e') || take('E'))) {
      if (!take('+')) take('-');
      part = read_digits();
    }
    const char* const end = text_.data() + at_;
    if (value != nullptr)
      if (const auto [stop, error] = std::from_chars(begin, end, value->whole); error == std::errc() && stop == end)
        value->kind = JsonValue::Kind::whole;
    return part;
  }

  /// `out`: where the characters go, as UTF-8; absent: nowhere.
  Json read_string(std::string* out) {
    Json part = expect('"');
    while (part == Json::valid && !take('"')) part = read_character(out);
    return part;
  }

  Json read_character(std::string* out) {
    expected_ = "the rest of a text";
    if (at_end()) return Json::cut;
    if (take('\\')) return read_escape(out);
    if (static_cast<unsigned char>(text_[at_]) < 0x20) return Json::broken;
    const std::string_view rest = text_.substr(at_);
    const std::size_t length = utf8_character(rest);
    at_ += length;
    if (out != nullptr) *out += rest.substr(0, length);
    if (length > 0) return Json::valid;
    // Characters with this beginning, if there is one: the bytes that follow are 80 or BF in one of them.
    const auto continues = [&](char c) {
      return rest.size() < 4 && utf8_character(std::string(rest) + std::string(3, c));
    };
    return continues('\x80') || continues('\xBF') ? Json::cut : Json::broken;
  }

  Json read_escape(std::string* out) {
    constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
    expected_ = "an escape";
    if (at_end()) return Json::cut;
    if (take('u')) return read_unicode(out);
    const std::size_t known = names.find(text_[at_]);
    if (known == names.npos) return Json::broken;
    ++at_;
    if (out != nullptr) *out += characters[known];
    return Json::valid;
  }

  /// A surrogate may stand alone if the text is not kept, of which it would be no character.
  Json read_unicode(std::string* out) {
    unsigned code = 0, low = 0;
    Json part = read_hex(code);
    if (out == nullptr || part != Json::valid) return part;
    if (code >= 0xdc00 && code < 0xe000) return broken("the first half of a surrogate pair");
    if (code >= 0xd800 && code < 0xdc00) {
      part = take('\\') && take('u') ? read_hex(low) : Json::broken;
      if (part != Json::valid || low < 0xdc00 || low >= 0xe000) return broken("the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10U) + (low - 0xdc00);
    }
    add_utf8(code, *out);
    return Json::valid;
  }

  Json read_hex(unsigned& code) {
    expected_ = "four hexadecimal digits";
    const std::size_t begin = at_;
    for (; at_ < begin + 4; ++at_) {
      if (at_end()) return Json::cut;
      if (!is_hex_digit(text_[at_])) return Json::broken;
    }
    std::from_chars(text_.data() + begin, text_.data() + at_, code, 16);
    return Json::valid;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  ///< brackets
  Next next_ = Next::value;
  JsonValue* root_;
  std::vector<JsonValue*> parents_;  ///< the values that are open, if they are kept
  std::string_view expected_;
};

}  // namespace

std::string_view name_of(Json json) {
  constexpr std::string_view names[] = {"valid", "cut", "broken"};
  return name_in(names, json);
}

Json read_json(std::string_view text) { return Reader(text).read(); }

JsonValue json_value_of(std::string_view text, const std::string& place, const char* remedy) {
  JsonValue out;
  Reader reader(text, &out);
  if (reader.read() != Json::valid)
    throw Error("{}: column {}: no JSON, {} was expected; {}", place, reader.at() + 1, reader.expected(), remedy);
  return out;
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? nullptr : &items[static_cast<std::size_t>(found - names.begin())];
}

Json read_json_line(std::string_view text, bool ended) {
  const std::size_t end = text.find('\n');
  const Json line = read_json(text.substr(0, end));
  return line == Json::cut && (ended || end != text.npos) ? Json::broken : line;
}

}  // namespace kvbench::eval
