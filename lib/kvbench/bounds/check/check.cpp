// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/check.hpp>

#include <utility>

namespace kvbench::bounds {

CheckRow& CheckContext::add(CheckKind kind, std::string part) {
  CheckRow& row = rows.emplace_back();
  row.check = check;
  row.kind = kind;
  row.part = std::move(part);
  if (subject != nullptr) {
    row.source = subject->source;
    row.prompt = subject->prompt;
    row.layer = subject->head.layer.value;
    row.kv_head = subject->head.head.value;
  } else if (reader != nullptr) {
    row.source = reader->path().substr(reader->path().find_last_of('/') + 1);
  }
  return row;
}

}  // namespace kvbench::bounds
