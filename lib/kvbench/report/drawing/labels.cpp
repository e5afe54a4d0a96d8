// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/labels.hpp>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace kvbench::report {
namespace {

/// Neighbouring labels that touch; they move together.
struct LabelBlock {
  double sum;     ///< of the preferred tops of the block, one per label
  double count;   ///< number of labels
  double height;  ///< total height
  double top() const { return sum / count; }
};

}  // namespace

std::vector<double> spread_labels(std::span<const LabelSlot> slots, double top, double bottom) {
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return slots[i].preferred; });
  // Pool adjacent violators: a block is placed at the mean of its preferred tops and is merged with the block above
  // while they overlap.
  std::vector<LabelBlock> blocks;
  for (const std::size_t i : order) {
    LabelBlock block{slots[i].preferred - slots[i].height / 2, 1, slots[i].height};
    while (!blocks.empty() && blocks.back().top() + blocks.back().height > block.top()) {
      const LabelBlock above = blocks.back();
      blocks.pop_back();
      block = {above.sum + block.sum - block.count * above.height, above.count + block.count,
               above.height + block.height};
    }
    blocks.push_back(block);
  }
  const double total =
      std::accumulate(slots.begin(), slots.end(), 0., [](double s, const LabelSlot& l) { return s + l.height; });
  std::vector<double> centres(slots.size());
  double used = 0;  // height of the labels already placed
  std::size_t next = 0;
  for (const LabelBlock& block : blocks) {
    const double room = std::max(top + used, bottom - (total - used));
    double at = std::clamp(block.top(), std::min(top + used, room), room);
    for (double k = 0; k < block.count; ++k, ++next) {
      const double height = slots[order[next]].height;
      centres[order[next]] = at + height / 2;
      at += height;
      used += height;
    }
  }
  return centres;
}

double text_width(const std::string& text, double size) {
  double width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;  // continuation byte of a UTF-8 character
    width += c == 'm' || c == 'w' || c == 'M' || c == 'W' || c == '%' ? 0.88
             : c == 'i' || c == 'l' || c == ' ' || c == '.'           ? 0.32
                                                                      : 0.58;
  }
  return width * size;
}

Drawing with_text_below(Drawing drawing, const std::string& text) {
  constexpr double size = 11, height = 15, gap = 16;
  double y = drawing.height + gap;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) drawing.shapes += shape::text(0, y, line, "soft small"), y += height;
    line.clear();
  };
  std::istringstream words(text);
  for (std::string word; words >> word; line += (line.empty() ? "" : " ") + word) {
    if (text_width(line + " " + word, size) > drawing.width) end_line();
  }
  end_line();
  drawing.height = y - height + 4;
  return drawing;
}

std::vector<std::string> wrap_params(const std::string& params, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < params.size();) {
    const std::size_t end = std::min(params.find(';', begin), params.size() - 1) + 1;
    const std::string piece = params.substr(begin, end - begin);
    if (lines.empty() || lines.back().size() + piece.size() > width) {
      lines.push_back(piece);
    } else {
      lines.back() += piece;
    }
    begin = end;
  }
  return lines;
}

}  // namespace kvbench::report
