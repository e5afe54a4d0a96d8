// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/outlier_heads.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include <kvbench/core/input_file.hpp>

namespace kvbench::methods {
namespace {

/// The head of a line, or nothing where the line is empty or a comment.
std::optional<OutlierHead> parse_line(std::string line, const std::string& path, Index number) {
  line.resize(std::min(line.size(), line.find('#')));
  std::istringstream words(line);
  if ((words >> std::ws).eof()) return {};
  OutlierHead head;
  if (!(words >> head.layer >> head.kv_head) || !(words >> std::ws).eof() || head.layer < 0 || head.kv_head < 0) {
    throw Error("{}:{}: '{}' is no outlier head; write the indices of layer and kv head, such as \"0 3\"", path, number,
                line);
  }
  return head;
}

std::string outliers_text(const std::string& path) {
  try {
    return read_input_file(path, 256 << 10, "a file of outlier heads");
  } catch (const Error& error) {
    throw Error("chelsea.outliers: {} Give none, auto, or a file of lines \"layer kv_head\".", error.what());
  }
}

}  // namespace

std::vector<OutlierHead> read_outlier_heads(const std::string& path) {
  std::istringstream file(outliers_text(path));
  std::vector<OutlierHead> heads;
  std::string line;
  for (Index number = 1; std::getline(file, line); ++number) {
    const std::optional<OutlierHead> head = parse_line(line, path, number);
    if (!head) continue;
    if (std::ranges::find(heads, *head) != heads.end()) {
      throw Error("{}:{}: layer {}, kv head {} is listed twice", path, number, head->layer, head->kv_head);
    }
    heads.push_back(*head);
  }
  if (heads.empty()) throw Error("{} names no outlier head; use chelsea.outliers=none", path);
  std::ranges::sort(heads);
  return heads;
}

LinkQuality link_quality(const std::vector<MergeLink>& links, Index linking, double threshold) {
  if (linking == 0 || links.empty()) return {.unlinked = linking == 0 ? 0.0 : 1.0, .mean = 1};
  double sum = 0;
  for (const MergeLink& link : links) sum += double{link.similarity};
  const auto linked = std::ranges::count_if(links, [&](const MergeLink& link) { return link.similarity > threshold; });
  return {.unlinked = static_cast<double>(linking - linked) / static_cast<double>(linking),
          .mean = sum / static_cast<double>(links.size())};
}

std::vector<Index> worst_linked(const std::vector<LinkQuality>& heads, double ratio) {
  std::vector<Index> order(heads.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](Index a, Index b) {
    const LinkQuality &x = heads[static_cast<std::size_t>(a)], &y = heads[static_cast<std::size_t>(b)];
    return x.unlinked != y.unlinked ? x.unlinked > y.unlinked : x.mean < y.mean;
  });
  // 1e-9: a product such as 0.07 * 100 must not round up because of its rounding error.
  order.resize(static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(heads.size()) - 1e-9)));
  std::ranges::sort(order);
  return order;
}

Index budget_beside_outliers(Index budget, Index heads, Index full, Index tokens) {
  if (full == 0 || budget >= tokens) return budget;
  const Index left = budget * heads - full * tokens;
  if (full < heads && left >= heads - full) return left / (heads - full);
  throw Infeasible(fmt::format(
      "{} of {} kv heads kept whole need {} of the {} tokens that a budget of {} gives all heads, which leaves less "
      "than one token per other head; use chelsea.outliers=none, fewer outlier heads, or a budget of at least {}",
      full, heads, full * tokens, budget * heads, budget,
      std::min(tokens, (full * tokens + heads - full + heads - 1) / heads)));
}

}  // namespace kvbench::methods
