// SPDX-License-Identifier: Apache-2.0
// The finished passes of an evaluation, by key, in a file from which it can continue.
#pragma once

#include <kvbench/eval/results.hpp>
#include <kvbench/store/frame_file.hpp>

namespace kvbench::eval {

/// What a document contributes beside its passes.
struct EvaluatedDocument {
  std::vector<ShortScore> without_distant;
  std::vector<int> layers;    ///< in which methods can run, ascending
  std::vector<int> windowed;  ///< those of them with a sliding window
  std::vector<int> answer;    ///< of the full cache, if the document is continued: its scored tokens
};

/// What records must fit.
struct ScoredDocument {
  std::size_t tokens = 0;   ///< that are predicted; those of an answer that is stored follow from it
  std::vector<int> layers;  ///< in which methods may run
  Index generate = 0;       ///< EvalDocument::generate
  bool has_short = true;    ///< there are scores with a short context
  std::size_t messages = 0;
};

class PassFile {
 public:
  /// Throws as store::FrameFile does.
  PassFile(std::string path, store::FrameFile::Mode mode) : file_(std::move(path), mode) {}

  const store::RecordFile& file() const { return file_; }
  bool has(const std::string& key) const { return file_.has(key); }
  void add(const std::string& key, PassResult pass);
  void add(const std::string& key, EvaluatedDocument document);
  /// The record with this key. Throw Error where the file holds under it another kind of record, one that does not fit
  /// the document or the injection, or figures that cannot be right. Indices of configuration and document are left to
  /// the caller.
  PassResult pass(const std::string& key, const Injection& injection, const ScoredDocument& document) const;
  EvaluatedDocument document(const std::string& key, const ScoredDocument& of) const;

 private:
  store::RecordFile file_;
};

}  // namespace kvbench::eval
