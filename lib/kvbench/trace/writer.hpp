// SPDX-License-Identifier: Apache-2.0
// Writes a trace. Shapes are declared first; rows are then written in any order and any pieces, as a running model
// produces them.
#pragma once

#include <memory>
#include <span>
#include <string>

#include <kvbench/trace/schema.hpp>

namespace kvbench::trace {

struct WriteOptions {
  /// shuffle + deflate in chunks of whole heads; else contiguous and aligned to 4096 bytes for mmap
  bool compress = false;
};

/// Writes to NAME.tmp.PID and renames it at commit(), so that a trace is written atomically. The destructor removes the
/// temporary file if commit() was not called. Throws IoError (exit 3) with file, cause and remedy where the disk is
/// full or the folder is not writable.
class Writer {
 public:
  /// Creates all groups, attributes and datasets of `info`. Arrays of [heads, rows, dim] are unwritten at first.
  Writer(std::string path, const TraceInfo& info, WriteOptions options = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Writes rows [row_begin, row_begin + rows) of one head, narrowed to the dtype of the trace (column_sums stay f32).
  /// `data` is [rows, dim] row-major, fp32; for column_sums dim = 1. `prompt` indexes info.prompts, `layer` its layers.
  /// Rows of probes come T at a time, and are rounded to 127 steps of their largest value, which probe_scales get.
  /// Throws Error with dataset and value where a value is not finite or does not fit the dtype (f16 overflow), and
  /// where all values of a row lie below its normal range (f16 underflow).
  void write_rows(std::size_t prompt, std::size_t layer, Array array, std::int64_t head, std::int64_t row_begin,
                  std::span<const float> data);

  /// Checks that every row of every array was written, closes and syncs the file, renames it to its final name and
  /// syncs the folder.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvbench::trace
