// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/field_names.hpp>

namespace kvbench::config {

std::string rename_fields(std::string_view message, const FieldNames& name_of) {
  std::string out;
  while (true) {
    const std::size_t open = message.find('`');
    const std::size_t close = open == message.npos ? message.npos : message.find('`', open + 1);
    out += message.substr(0, open == message.npos || close == message.npos ? message.npos : open);
    if (close == message.npos) return out;
    const std::string name = name_of(message.substr(open + 1, close - open - 1));
    const std::string repeated = name + " and ";
    if (name.empty()) {
      out += message.substr(open, close + 1 - open);
    } else if (out.ends_with(repeated)) {
      out.resize(out.size() - (repeated.size() - name.size()));
    } else {
      out += name;
    }
    message.remove_prefix(close + 1);
  }
}

}  // namespace kvbench::config
