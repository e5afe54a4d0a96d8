// SPDX-License-Identifier: Apache-2.0
// What tasks take from the haystack, and their random choices.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/eval/tasks.hpp>
#include <kvbench/kernels/philox.hpp>

namespace kvbench::eval {

using Tokens = std::vector<int>;

inline void append_tokens(Tokens& out, const Tokens& more) { out.insert(out.end(), more.begin(), more.end()); }

/// Random choices of one document: Philox with key (seed, task) and counter (document, number of the draw).
class TaskDraws {
 public:
  TaskDraws(std::uint32_t seed, std::string_view task, Index document);
  std::size_t below(std::size_t count);  ///< uniform in [0, count)
  double uniform();                      ///< in (0, 1)
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  PhiloxKey key_;
  std::uint32_t document_, count_ = 0;
};

/// `count` tokens of the document's excerpt, its own part of the haystack, from a random position on, tokenised as a
/// whole. Throws Error where it has fewer.
Tokens passage(const TaskRequest& request, Index document, TaskDraws& draws, Index count);

/// Lines of the excerpt from a random position on, each tokenised by itself, in total `count` tokens: the excess is cut
/// from the front. At the end of the excerpt they continue at its beginning. Throws Error where the excerpt has fewer.
std::vector<Tokens> filler_lines(const TaskRequest& request, Index document, TaskDraws& draws, Index count);

/// Removes tokens from the front until `count` are left.
void cut_front(std::vector<Tokens>& lines, Index count);

/// The different words of 3 to 10 Latin letters in the haystack, in lower case and random order. Throws Error where
/// there are fewer than `least`.
std::vector<std::string> shuffled_words(const TaskRequest& request, TaskDraws& draws, std::size_t least);

/// Draws texts that differ from each other and do not occur in the haystack.
class FreshTexts {
 public:
  FreshTexts(const TaskRequest& request, TaskDraws& draws) : request_(&request), draws_(&draws) {}
  std::string number(std::size_t digits = 5);  ///< the first digit is not 0
  /// The number with another digit at a place, from 0.
  std::string number_beside(const std::string& number, std::size_t place);
  std::string variable();  ///< five capital letters

 private:
  std::string fresh(std::string_view first, std::string_view others, std::size_t size);
  /// Whether the text is one; it is not from then on.
  bool take(const std::string& text);
  const TaskRequest* request_;
  TaskDraws* draws_;
  std::set<std::string> used_;
};

}  // namespace kvbench::eval
