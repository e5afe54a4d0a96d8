// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/growing_rows.hpp>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

Buffer<float> GrowingRows::add(Index count) {
  const Index used = rows_.rows();
  if (used + count > storage_.rows()) {
    const auto larger = backend_->allocate<float>(2 * used + count, rows_.cols());
    copy_rows(rows_, larger.slice(0, used), *backend_);
    storage_ = larger;
  }
  rows_ = storage_.slice(0, used + count);
  return storage_.slice(used, count);
}

Buffer<float> GrowingRows::rewrite(Index first, Index count) {
  if (!storage_.present()) {
    const auto copy = backend_->allocate<float>(rows_.rows(), rows_.cols());
    copy_rows(rows_, copy, *backend_);
    rows_ = storage_ = copy;
  }
  return storage_.slice(first, count);
}

void GrowingRows::append(const Buffer<const float>& source, const std::vector<std::int32_t>& ids) {
  const Index count = std::ssize(ids);
  if (count == 0) return;
  const auto out = add(count);
  backend_->run(
      kernels::GatherRows<Buffer>{.source = source, .ids = backend_->adopt(std::vector(ids), count), .out = out});
}

}  // namespace kvbench::methods
