// SPDX-License-Identifier: Apache-2.0
// A layer whose tokens have given scores.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <kvbench/methods/eviction/given_scores.hpp>
#include <kvbench/session/session.hpp>

#include <support/small.hpp>

namespace kvbench::testing {

/// Layer 0 of prompt "0", with a kv head for each row of scores. Keys are 0.
class ScoredLayer {
 public:
  explicit ScoredLayer(std::vector<std::vector<float>> scores) : scores_(std::move(scores)) {
    const Index n = std::ssize(scores_.front());
    for (std::size_t h = 0; h < scores_.size(); ++h) {
      heads_.push_back(small_head(std::vector<float>(static_cast<std::size_t>(n + 1), 0), n));
      methods::HeadPrompt& prompt = prompts_.emplace_back(prompt_of(heads_.back(), ref()));
      prompt.prompt_group = "0";
      prompt.layer = LayerId(0);
      prompt.head = KvHeadId(static_cast<std::int64_t>(h));
      prompt.num_kv_heads = std::ssize(scores_);
    }
  }

  /// The scores as those of a file.
  methods::MethodInfo method() const {
    methods::LayerScores layer{std::ssize(scores_), std::ssize(scores_.front()), {}};
    for (const auto& row : scores_) layer.values.insert(layer.values.end(), row.begin(), row.end());
    return methods::given_scores_method("scores:s.h5", {"s.h5", "", {{"0", {{0, layer}}}}});
  }

  std::unique_ptr<Session> open(const methods::MethodInfo& info, std::vector<methods::Assignment> settings,
                                Index budget) const {
    return std::make_unique<Session>(info.prepare(prompts_, info.bind(settings), ref())(budget, 0),
                                     prompts_.front().tokens(), false, ref());
  }

  /// The tokens that each head keeps.
  std::vector<Ids> kept(const methods::MethodInfo& info, std::vector<methods::Assignment> settings,
                        Index budget) const {
    const auto session = open(info, std::move(settings), budget);
    std::vector<methods::QueryBlock> blocks;
    for (const HeadData& head : heads_) blocks.push_back(query_block(head, head.n, head.total, head.total, ref()));
    const auto& tables = session->entries(blocks);
    std::vector<Ids> out;
    for (std::size_t h = 0; h < heads_.size(); ++h)
      out.push_back(ids_of(visible_entries(heads_[h], tables[h], blocks[h], ref())[0]));
    return out;
  }

 private:
  std::vector<std::vector<float>> scores_;
  std::vector<HeadData> heads_;
  std::vector<methods::HeadPrompt> prompts_;
};

}  // namespace kvbench::testing
