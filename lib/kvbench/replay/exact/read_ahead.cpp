// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/read_ahead.hpp>

#include <algorithm>
#include <new>
#include <system_error>

namespace kvbench::replay {

namespace {

std::size_t slab_bytes_of(const trace::TraceInfo& info, const WorkItem& item) {
  return item.kv_heads.size() * slab_bytes(info, item.place(0));
}

}  // namespace

ReadAhead::ReadAhead(const trace::Reader& reader, const ReplayPlan& plan, std::size_t depth, std::size_t largest)
    : reader_(reader), plan_(plan), depth_(depth), largest_(largest) {}

ReadAhead::Slabs ReadAhead::take(std::size_t u, Backend& backend) {
  Future future = begin_taking(u, backend);
  std::optional<Slabs> early = future.valid() ? future.get() : std::nullopt;
  Slabs slabs = early ? std::move(*early) : read(u, *uploader_);
  start_next(backend);
  return slabs;
}

ReadAhead::Slabs ReadAhead::read(std::size_t u, Uploader& uploader) const {
  const WorkItem& item = plan_.work_items[u];
  Slabs slabs;
  for (std::size_t h = 0; h < item.kv_heads.size(); ++h) {
    slabs.push_back(read_head(reader_, item.prompt, item.place(h), uploader));
  }
  return slabs;
}

/// Absent where memory is exhausted: after the running work item has released its memory, take() reads the work item
/// itself.
std::optional<ReadAhead::Slabs> ReadAhead::read_if_it_fits(std::size_t u, Uploader& uploader) const {
  try {
    return read(u, uploader);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

ReadAhead::Future ReadAhead::begin_taking(std::size_t u, Backend& backend) {
  const std::lock_guard lock(mutex_);
  if (!uploader_) uploader_ = backend.make_uploader();
  next_ = std::max(next_, u + 1);
  const auto found = ahead_.find(u);
  if (found == ahead_.end()) return {};
  Future future = std::move(found->second);
  ahead_.erase(found);
  return future;
}

void ReadAhead::start_next(const Backend& backend) {
  const std::lock_guard lock(mutex_);
  if (next_ >= plan_.work_items.size() || ahead_.size() >= depth_) return;
  const auto memory = backend.memory();
  const std::size_t largest = memory ? std::min(largest_, memory->limit / 8) : largest_;
  if (slab_bytes_of(reader_.info(), plan_.work_items[next_]) > largest) return;
  try {
    ahead_[next_] = std::async(std::launch::async, [this, u = next_] { return read_if_it_fits(u, *uploader_); });
    ++next_;
  } catch (const std::system_error&) {
    ahead_.erase(next_);  // no more threads: take() reads the work item
  }
}

}  // namespace kvbench::replay
