// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/json.hpp>

#include <algorithm>
#include <string>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench::eval {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read() {
    while (true) {
      skip_space();
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
        return read_string();
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
    value_ends();
    return closed;
  }

  Json read_value() {
    const char first = text_[at_];
    if (take('{') || take('[')) {  // a stack of its own: a recursion would end at some depth
      open_ += first;
      next_ = first == '{' ? Next::key_or_end : Next::value_or_end;
      return Json::valid;
    }
    value_ends();
    if (first == '"') return read_string();
    if (first == '-' || is_digit(first)) return read_number();
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

  Json read_number() {
    take('-');
    Json part = take('0') ? Json::valid : read_digits();  // nothing follows a leading 0
    if (part == Json::valid && take('.')) part = read_digits();
    if (part == Json::valid && (take('e') || take('E'))) {
      if (!take('+')) take('-');
      part = read_digits();
    }
    return part;
  }

  Json read_string() {
    Json part = expect('"');
    while (part == Json::valid && !take('"')) part = read_character();
    return part;
  }

  Json read_character() {
    if (at_end()) return Json::cut;
    if (take('\\')) return read_escape();
    if (static_cast<unsigned char>(text_[at_]) < 0x20) return Json::broken;
    const std::string_view rest = text_.substr(at_);
    const std::size_t length = utf8_character(rest);
    at_ += length;
    if (length > 0) return Json::valid;
    // Characters with this beginning, if there is one: the bytes that follow are 80 or BF in one of them.
    const auto continues = [&](char c) {
      return rest.size() < 4 && utf8_character(std::string(rest) + std::string(3, c));
    };
    return continues('\x80') || continues('\xBF') ? Json::cut : Json::broken;
  }

  Json read_escape() {
    if (at_end()) return Json::cut;
    if (!take('u'))
      return std::string_view("\"\\/bfnrt").find(text_[at_++]) != std::string_view::npos ? Json::valid : Json::broken;
    for (int digit = 0; digit < 4; ++digit) {
      if (at_end()) return Json::cut;
      if (!is_hex_digit(text_[at_++])) return Json::broken;
    }
    return Json::valid;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  ///< brackets
  Next next_ = Next::value;
};

}  // namespace

std::string_view name_of(Json json) {
  constexpr std::string_view names[] = {"valid", "cut", "broken"};
  return name_in(names, json);
}

Json read_json(std::string_view text) { return Reader(text).read(); }

Json read_json_line(std::string_view text, bool ended) {
  const std::size_t end = text.find('\n');
  const Json line = read_json(text.substr(0, end));
  return line == Json::cut && (ended || end != text.npos) ? Json::broken : line;
}

}  // namespace kvbench::eval
