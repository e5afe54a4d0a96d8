// SPDX-License-Identifier: Apache-2.0
// The heads of the next work items are read while the current ones are computed.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <optional>

#include <kvbench/replay/exact/head.hpp>

namespace kvbench::replay {

/// Provides the slabs of work items to workers, which take each work item once and roughly in plan order. Thread-safe.
class ReadAhead {
 public:
  /// At most `depth` work items are read ahead, none of them larger than `largest` bytes. Both referents must outlive
  /// this object.
  ReadAhead(const trace::Reader& reader, const ReplayPlan& plan, std::size_t depth, std::size_t largest);

  /// The slabs of work item u, in the order of its kv heads, in the memory of `backend`; starts reading a later work
  /// item. Throws as read_head() does.
  std::vector<HeadSlabs> take(std::size_t u, Backend& backend);

 private:
  using Slabs = std::vector<HeadSlabs>;
  using Future = std::future<std::optional<Slabs>>;

  Slabs read(std::size_t u, Uploader& uploader) const;
  std::optional<Slabs> read_if_it_fits(std::size_t u, Uploader& uploader) const;
  Future begin_taking(std::size_t u, Backend& backend);
  void start_next(const Backend& backend);

  const trace::Reader& reader_;
  const ReplayPlan& plan_;
  const std::size_t depth_, largest_;
  std::mutex mutex_;
  std::shared_ptr<Uploader> uploader_;
  std::size_t next_ = 0;                 ///< work items below this index are taken or being read
  std::map<std::size_t, Future> ahead_;  ///< last: its destructor waits for the reads that use the rest
};

}  // namespace kvbench::replay
