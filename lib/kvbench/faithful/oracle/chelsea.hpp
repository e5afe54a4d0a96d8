// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), Algorithm 1 with sections 5.1 to 5.3, in fp64 and without kernels: which entries the
// cache holds after the prompt and after each decoded token. Numbers that are lost in the available text are settings,
// read as in methods/merging/chelsea.hpp: sinks take at most a quarter of the budget, recent tokens at most half, the
// slack at most half of the rest.
#pragma once

#include <kvbench/bounds/chelsea/settings.hpp>
#include <kvbench/faithful/oracle/comparison.hpp>

namespace kvbench::faithful {

/// The rules that a fault could change. The defaults are those of the paper.
struct ChelseaRules {
  /// Section 5.2: "partitioning each chunk into two sets, A and B, in an alternating manner".
  enum class Sides { alternating, halves };
  Sides sides = Sides::alternating;
  /// Section 3: "we utilize the cosine similarity as the distance metric between key states".
  enum class Similarity { cosine, inner_product };
  Similarity similarity = Similarity::cosine;
  bool best_partner = true;  ///< section 5.2: an edge to the most similar token in B; false: to the least similar
  bool best_edges = true;    ///< section 5.2: edges of low similarity are pruned; false: those of high similarity
  Index chunk_excess = 0;    ///< section 5.2: entries per chunk beyond the chunk size
  Index merged_excess = 0;   ///< Algorithm 1: entries that a round removes beyond those needed
  /// Section 5.3: keys and values are means, weighted by degree; the degree of a cluster is the sum of degrees.
  bool weighted_means = true, merged_values = true, added_degrees = true;
  bool weights_are_degrees = true;  ///< Eq. 2; false: 1
  /// Section 5.2: "We keep the attention sink and recent tokens before partitioning".
  bool sinks_kept = true, recent_kept = true;
  /// Section 3: decoded tokens are appended to the cache; section 5.1: clustering follows when it exceeds the budget.
  enum class Decoded { appended, lost, merged };
  Decoded decoded = Decoded::appended;
  bool rounds_continue = true;  ///< appendix C.2: the clustering step is counted over the whole generation
};

struct ChelseaEntry {
  TokenId id = 0;
  double degree = 1;
  std::vector<double> key, value;
  double rounding = 0;  ///< how far an fp32 computation of the key may be away; 0 for tokens
};

/// The cache of one head.
class ChelseaOracle {
 public:
  ChelseaOracle(const bounds::ChelseaSettings& settings, const ChelseaRules& rules, Index budget,
                std::vector<ChelseaEntry> context);
  void append(ChelseaEntry token);

  bounds::Snapshot snapshot() const;
  /// Whether every decision so far was farther from a tie than the rounding of fp32. Ties between equal tokens go to
  /// the earlier one.
  bool decided() const { return decided_; }

 private:
  struct Edge {
    std::size_t from = 0, to = 0;
    double score = 0, rounding = 0;
    bool close = false;  ///< another partner is as good
  };
  Edge edge_of(std::size_t from, const std::vector<std::size_t>& partners) const;
  std::vector<Edge> edges_of(std::vector<bool>& in_a) const;
  void prune(std::vector<Edge>& edges, std::size_t count);
  void run_round(std::size_t target);
  void compress(Index size);
  void merge_at_once();

  bounds::ChelseaSettings settings_;
  ChelseaRules rules_;
  Index budget_, tokens_, sinks_, recent_, slack_, round_ = 0;
  bool decided_ = true;
  std::vector<ChelseaEntry> entries_;
  std::vector<ChelseaEntry> middle_;  ///< during compress()
};

OracleRun chelsea_oracle(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                         const bounds::ChelseaSettings& settings, const ChelseaRules& rules = {});

}  // namespace kvbench::faithful
