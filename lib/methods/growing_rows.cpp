// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/growing_rows.hpp>

#include <algorithm>

#include <kvbench/methods/stages.hpp>

namespace kvbench {

Buffer<float> GrowingRows::add(Index count) {
  const Index used = rows_.rows();
  if (used + count > storage_.rows()) {
    const auto larger = backend_->allocate<float>(std::max(2 * used, used + count), rows_.cols());
    copy_rows(rows_, larger.slice(0, used), *backend_);
    storage_ = larger;
  }
  rows_ = storage_.slice(0, used + count);
  return storage_.slice(used, count);
}

}  // namespace kvbench
