// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/exact_ends.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

class EndsCodec : public Codec {
 public:
  EndsCodec(std::shared_ptr<const Codec> format, const ExactEnds& ends) : format_(std::move(format)), ends_(ends) {}

  Index encoded(Index, Index held) const override { return std::max<Index>(0, held - ends_.last); }
  Buffer<const float> decoded(const Buffer<const float>& rows, Backend& backend) const override {
    return format_->decoded(rows, backend);
  }
  bool by_row() const override { return true; }

  Buffer<const float> decoded_at(const Buffer<const float>& rows, std::span<const std::int32_t> tokens,
                                 Backend& backend) const override {
    const Buffer<const float> rounded = format_->decoded_at(rows, tokens, backend);
    if (std::ranges::none_of(tokens, [&](std::int32_t token) { return is_first(token); })) return rounded;
    const auto out = backend.allocate<float>(rows.rows(), rows.cols());
    copy_rows(rounded, out, backend);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto row = static_cast<Index>(i);
      if (is_first(tokens[i])) copy_rows(rows.slice(row, 1), out.slice(row, 1), backend);
    }
    return out;
  }

  void append(Index first, const Buffer<const float>& rows) const override { format_->append(first, rows); }

  /// A cache that drops some of the first tokens is counted as if it had them.
  Footprint footprint(Index rows, Index cols) const override {
    const Index first = std::min(ends_.first, rows);
    Footprint out = format_->footprint(rows - first, cols);
    if (first == 0) return out;
    const double share = static_cast<double>(first) / static_cast<double>(rows);
    for (FootprintArray& array : out) array.share *= 1 - share;
    out.push_back({.name = "of the first tokens", .rows = first, .cols = cols, .share = share});
    return out;
  }

  Footprint extras(std::span<const std::int32_t> tokens) const override {
    std::vector<std::int32_t> rounded;
    std::ranges::copy_if(tokens, std::back_inserter(rounded), [&](std::int32_t token) { return !is_first(token); });
    return format_->extras(rounded);
  }

 private:
  bool is_first(std::int32_t token) const { return token >= 0 && token < ends_.first; }

  std::shared_ptr<const Codec> format_;
  ExactEnds ends_;
};

}  // namespace

void fields(ParamVisitor& visitor, ExactEnds& ends) {
  visitor.integer("first", ends.first, {.min = 0}, "tokens at the beginning of the context that stay in 16 bits");
  visitor.integer("last", ends.last, {.min = 0}, "most recent tokens that stay in 16 bits");
}

Codecs with_exact_ends(Codecs codecs, const ExactEnds& ends) {
  if (ends.first == 0 && ends.last == 0) return codecs;
  for (auto* codec : {&codecs.keys, &codecs.values}) {
    if (*codec == nullptr) continue;
    if (!(*codec)->by_row())
      throw Unavailable("parameters 'first' and 'last' are for groups of channels; these groups hold several tokens");
    *codec = std::make_shared<EndsCodec>(std::move(*codec), ends);
  }
  return codecs;
}

}  // namespace kvbench::methods
