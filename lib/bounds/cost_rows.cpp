// SPDX-License-Identifier: Apache-2.0
// The complexities that the papers state, one function a paper.
#include <cmath>

#include <kvbench/bounds/cost.hpp>

namespace kvbench {
namespace {

const std::vector<Index> lengths = {512, 1024, 2048, 4096};

Index fixed_budget(Index) { return 256; }
Index half(Index n) { return n / 2; }

/// One method at all lengths.
struct Series {
  CostCase what;
  std::vector<Work> work;
  Series(CheckContext& context, CostCase of) : what(std::move(of)) {
    for (const Index n : lengths) {
      context.poll();
      work.push_back(work_of(what, n, context.backend));
    }
  }
  std::vector<double> of(double Work::*field) const {
    std::vector<double> y;
    for (const Work& w : work) y.push_back(w.*field);
    return y;
  }
  void row(CheckContext& context, const std::string& part, double Work::*field, double stated,
           const std::string& complexity) const {
    add_growth(context, part, what, lengths, of(field), stated, complexity);
  }
};

/// How fast log2(n / t) grows over the lengths.
double log_growth(double t) {
  std::vector<double> y;
  for (const Index n : lengths) y.push_back(std::log2(static_cast<double>(n) / t));
  return growth(lengths, y);
}

void check_subgen(CheckContext& context) {
  // 32 centres, far apart next to the radius: m' does not grow, which is what the theorem assumes of the stream.
  const Series s(context, {"subgen", {{"delta", "2"}, {"t", "4"}, {"s", "64"}}, fixed_budget});
  s.row(context, "stream of n tokens in a fixed number of clusters", &Work::compress_flops, 1, "O(n m d)");
  s.row(context, "a query", &Work::query_flops, 0, "O(d (m t + s)), sublinear in n");
  s.row(context, "memory", &Work::bytes, 0, "O(d (m t + s)), sublinear in n");
}

void check_balancekv(CheckContext& context) {
  const Series whole(context, {"balancekv", {{"block", "4096"}, {"rounds", "1"}}, half});
  whole.row(context, "SoftmaxBalance on one batch of n", &Work::compress_flops, 2, "O((d + s) n^2)");
  const Series blocks(context, {"balancekv", {{"block", "256"}, {"rounds", "1"}}, half});
  blocks.row(context, "a halving in blocks of 256", &Work::compress_flops, 1, "O((d + s) b n)");
  const Series stream(context, {"balancekv", {{"mode", "stream"}, {"t", "64"}}, half});
  const double levels = log_growth(64);
  stream.row(context, "memory of a stream, t = 64", &Work::bytes, levels, "O(d t T), T = log2(n/t)");
  stream.row(context, "stream of n tokens, t = 64", &Work::compress_flops, 1 + levels, "O(n d t^2 T)");
  stream.row(context, "a query of a stream, t = 64", &Work::query_flops, levels, "O(d t T)");
}

/// The share of ranking centroids in the work of a query: with C clusters 2 C d of 2 C d + 4 B d.
void selection_share(CheckContext& context, const Series& s) {
  CheckRow& row = context.add(CheckKind::data, "share of selection in a query");
  const double attention = 4.0 * 256 * 16;
  row.measured = 1 - attention / s.work.back().query_flops;
  row.text = fmt::format(
      "selection is {:.1f} % of the operations of a query at n = {}, C = n/80, B = 256; the paper times about 5 % of the "
      "latency "
      "at C = 400, and 6 to 8 % of the prefill for clustering, of which no clock here says anything",
      100 * row.measured, lengths.back());
}

void check_clusterkv(CheckContext& context) {
  const Series fixed(context, {"clusterkv", {{"clusters", "16"}, {"iterations", "4"}}, fixed_budget});
  fixed.row(context, "clustering, 16 clusters, at most 4 iterations", &Work::compress_flops, 1, "O(i C L d)");
  fixed.row(context, "a query, 16 clusters", &Work::query_flops, 0, "O(C d + B d)");
  const Series growing(context, {"clusterkv", {{"iterations", "4"}}, fixed_budget});
  growing.row(context, "clustering, L/80 clusters, at most 4 iterations", &Work::compress_flops, 2, "O(i C L d), C = L/80");
  growing.row(context, "a query, L/80 clusters", &Work::query_flops, 1, "O(C d + B d), C = L/80");
  growing.row(context, "bytes that a query reads", &Work::read_bytes, 1, "O(C d + B d), C = L/80");
  selection_share(context, growing);
}

void check_chelsea(CheckContext& context) {
  const Series chunked(context, {"chelsea", {}, half}), whole(context, {"bsm", {}, half}), mesh(context, {"mesh", {}, half});
  chunked.row(context, "chunked soft matching, chunk 256", &Work::compress_flops, 1, "O(n c d)");
  whole.row(context, "bipartite soft matching", &Work::compress_flops, 2, "O(n^2 d)");
  mesh.row(context, "mesh", &Work::compress_flops, 2, "O(n^2 d)");
  const Series kmeans(context, {"kmeans", {{"iterations", "4"}}, half});
  kmeans.row(context, "k-means with n/2 clusters, at most 4 iterations", &Work::compress_flops, 2, "O(i n C d), C = n/2");
  const Series fixed(context, {"chelsea", {}, fixed_budget});
  fixed.row(context, "a query at a fixed budget", &Work::query_flops, 0, "O(B d)");
  fixed.row(context, "memory at a fixed budget", &Work::bytes, 0, "O(B d)");

  // Table 1 orders the four; its formulas are lost. At every length that holds two chunks or more.
  CheckRow& row = context.add(CheckKind::cost, "chunked < bipartite < mesh, at every n");
  row.source = "synthetic:cost";
  row.failures = 0;
  row.trials = std::ssize(lengths);
  row.allowed = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const double a = chunked.work[i].compress_flops, b = whole.work[i].compress_flops, c = mesh.work[i].compress_flops;
    *row.failures += !(a < b && b < c);
  }
  row.measured = chunked.work.back().compress_flops / whole.work.back().compress_flops;
  row.text =
      fmt::format("operations at n = {}: {:.3g}, {:.3g}, {:.3g}, and {:.3g} of k-means; chunking leaves {:.3f} of bipartite",
                  lengths.back(), chunked.work.back().compress_flops, whole.work.back().compress_flops,
                  mesh.work.back().compress_flops, kmeans.work.back().compress_flops, row.measured);
}

Claim cost_claim(std::string method, std::string paper, std::string statement, void (*run)(CheckContext&)) {
  return {.id = method + ".cost",
          .paper = std::move(paper),
          .statement = std::move(statement),
          .method = method,
          .scope = Scope::once,
          .run = run};
}

}  // namespace

Claim subgen_cost() {
  return cost_claim("subgen", "SubGen, arXiv 2402.06082, Theorem 1",
                    "linear time for a stream, sublinear memory and query time", check_subgen);
}

Claim balancekv_cost() {
  return cost_claim("balancekv", "BalanceKV, arXiv 2502.07861, Theorems 3.1 to 3.3",
                    "quadratic time for a batch, memory d t log(n/t) and d t^2 log(n/t) a step for a stream", check_balancekv);
}

Claim clusterkv_cost() {
  return cost_claim("clusterkv", "ClusterKV, arXiv 2412.03213, section III-C",
                    "clustering takes O(i C L d), selection O(C d) a query", check_clusterkv);
}

Claim chelsea_cost() {
  return cost_claim("chelsea", "Chelsea, arXiv 2506.11418, Table 1 and Table 10",
                    "chunking makes matching linear in the length, where the alternatives are quadratic", check_chelsea);
}

}  // namespace kvbench
