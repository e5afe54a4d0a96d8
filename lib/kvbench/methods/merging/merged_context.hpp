// SPDX-License-Identifier: Apache-2.0
// The cache of methods that replace the context by weighted entries once: a table that does not change, to which
// decoded tokens are added exactly.
#pragma once

#include <string>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

class MergedContext : public CompressedCache {
 public:
  /// `entries` [1, width] with a weight each, which the footprint names `weights`. d, dv are those of the head.
  MergedContext(const HeadPrompt& head, EntryTable entries, std::string weights, Backend& backend);

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { appended_ += tokens.size(); }
  EntryTables entries(const QueryBlock& queries) const override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return {.decoded = true}; }

 private:
  Backend& backend_;
  Index context_, d_, dv_;
  Index appended_ = 0;
  EntryTable table_;
  std::string weights_;
};

}  // namespace kvbench::methods
