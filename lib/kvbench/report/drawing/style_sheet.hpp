// SPDX-License-Identifier: Apache-2.0
// What the classes of drawings look like on paper: report.css, read for files that browsers do not show.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kvbench::report {

/// Properties by name, such as stroke-width: "1.1".
using Properties = std::map<std::string, std::string, std::less<>>;

/// An element with its classes, as a selector sees it.
struct StyledElement {
  std::string tag;
  std::vector<std::string> classes;
};

/// The rules for drawings of a style sheet, and its variables for light screens. Rules have the forms "svg TAG", "svg
/// .CLASS", "svg .CLASS .CLASS" and "svg .CLASS TAG"; @media is ignored.
class StyleSheet {
 public:
  explicit StyleSheet(std::string_view css);

  /// The properties of the last of these elements, which are each inside the one before; variables are resolved.
  Properties of(const std::vector<StyledElement>& path) const;

 private:
  struct Rule {
    std::vector<std::string> selector;  ///< behind "svg"
    Properties properties;
  };
  std::vector<Rule> rules_;
  Properties root_;
};

/// That of reports.
const StyleSheet& report_style();

}  // namespace kvbench::report
