// SPDX-License-Identifier: Apache-2.0
#include <kvbench/store/record_file.hpp>

namespace kvbench::store {

RecordFile::RecordFile(std::string path, FrameFile::Mode mode) : file_(std::move(path), mode) {
  for (const Frame& frame : file_.frames()) records_[frame.key] = frame;
}

void RecordFile::append(std::uint32_t kind, const std::string& key, std::string_view payload) {
  file_.append(kind, key, payload);
  records_[key] = file_.frames().back();
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ < std::chrono::seconds(1)) return;
  synced_ = now;
  file_.sync();
}

}  // namespace kvbench::store
