// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/style_sheet.hpp>

#include <algorithm>

#include <kvbench/report/document/assets.hpp>

namespace kvbench::report {
namespace {

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \n\t"), last = text.find_last_not_of(" \n\t");
  return first == text.npos ? "" : std::string(text.substr(first, last - first + 1));
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    if (std::string part = trimmed(text.substr(begin, end - begin)); !part.empty()) out.push_back(std::move(part));
    begin = end + 1;
  }
  return out;
}

Properties declarations(std::string_view text) {
  Properties out;
  for (const std::string& part : parts_of(text, ';')) {
    const std::size_t colon = part.find(':');
    if (colon != part.npos) out[trimmed(part.substr(0, colon))] = trimmed(part.substr(colon + 1));
  }
  return out;
}

std::string without_comments(std::string_view css) {
  std::string out;
  while (!css.empty()) {
    const std::size_t begin = std::min(css.find("/*"), css.size());
    out += css.substr(0, begin);
    const std::size_t end = css.find("*/", begin);
    css = end == css.npos ? "" : css.substr(end + 2);
  }
  return out;
}

/// Position behind the bracket that closes the one at `open`.
std::size_t block_end(const std::string& css, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < css.size(); ++i) {
    depth += css[i] == '{' ? 1 : css[i] == '}' ? -1 : 0;
    if (depth == 0) return i + 1;
  }
  return css.size();
}

bool selects(const std::string& selector, const StyledElement& element) {
  if (selector.front() != '.') return selector == element.tag;
  return std::ranges::find(element.classes, selector.substr(1)) != element.classes.end();
}

std::string resolved(std::string value, const Properties& variables) {
  constexpr std::string_view begin = "var(";
  for (int depth = 0; depth < 4 && value.starts_with(begin); ++depth) {
    const auto known = variables.find(value.substr(begin.size(), value.size() - begin.size() - 1));
    if (known == variables.end()) return "none";
    value = known->second;
  }
  return value;
}

}  // namespace

StyleSheet::StyleSheet(std::string_view css) {
  const std::string text = without_comments(css);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    if (open == text.npos) break;
    const std::size_t end = block_end(text, open);
    const std::string head = trimmed(std::string_view(text).substr(at, open - at));
    const Properties properties = declarations(std::string_view(text).substr(open + 1, end - open - 2));
    if (head == ":root") root_ = properties;
    if (head.starts_with("svg ")) rules_.push_back({parts_of(head.substr(4), ' '), properties});
    at = end;
  }
}

Properties StyleSheet::of(const std::vector<StyledElement>& path) const {
  Properties variables = root_, out;
  for (std::size_t depth = 0; depth < path.size(); ++depth) {
    for (const Rule& rule : rules_) {
      if (!selects(rule.selector.back(), path[depth])) continue;
      const auto outer = path.begin() + static_cast<std::ptrdiff_t>(depth);
      const auto around = [&](const StyledElement& e) { return selects(rule.selector.front(), e); };
      if (rule.selector.size() > 1 && std::none_of(path.begin(), outer, around)) continue;
      for (const auto& [name, value] : rule.properties) {
        if (name.starts_with("--")) variables[name] = resolved(value, variables);
        if (depth + 1 == path.size()) out[name] = value;
      }
    }
  }
  for (auto& [name, value] : out) value = resolved(value, variables);
  return out;
}

const StyleSheet& report_style() {
  static const StyleSheet sheet(report_css());
  return sheet;
}

}  // namespace kvbench::report
