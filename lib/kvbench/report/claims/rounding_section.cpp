// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/report/text/sentences.hpp>

namespace kvbench::report {
namespace {

using rounding::Family;
using rounding::HeadRounding;

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.2g} %", 100 * share); }

/// "4.5", ">8.5" where no format of the family keeps the head, "-" where it is unknown.
std::string bits_text(const HeadRounding& head, Family family) {
  const double bits = head.needed_bits(family);
  if (std::isnan(bits)) return "-";
  if (std::isfinite(bits)) return fmt::format("{:.3g}", bits);
  for (std::size_t f = 0; f < head.formats.size(); ++f) {
    if (rounding::key_formats()[f].family == family) return fmt::format(">{:.3g}", head.formats[f].bits);
  }
  return "-";
}

std::string constant_text(const rounding::KeyShape& keys) {
  return std::isinf(keys.constant) ? "all" : fmt::format("{:.2g}", keys.constant);
}

std::string channels_text(const std::vector<Index>& channels) {
  std::vector<std::string> names;
  for (const Index channel : channels) names.push_back(std::to_string(channel));
  return names.size() > 4 ? fmt::format("{} of them", names.size()) : fmt::format("{}", fmt::join(names, ", "));
}

std::string place_text(const HeadRounding& head, bool texts) {
  return fmt::format("kv head {}{}", head.kv_head, texts ? fmt::format(" on text {}", head.prompt) : "");
}

/// "Rounded by channel, 5 bits keep it; by token, 8.5.", of the families that have a format which keeps the head.
std::string kept_by(const HeadRounding& head) {
  std::vector<std::string> ways;
  for (const Family family : {Family::by_token, Family::rotated, Family::by_channel}) {
    const double bits = head.needed_bits(family);
    if (std::isfinite(bits)) ways.push_back(fmt::format("{:.3g} bits {}", bits, name_of(family)));
  }
  if (ways.empty()) return "No format that was tried keeps this layer.";
  return fmt::format("What keeps this layer: {}.", fmt::join(ways, "; "));
}

/// Why rounding by token moves so much: the constant part, only where 4 bits move less than half as much without it.
std::string cause_of(const HeadRounding& head) {
  const double centred = head.of(Family::centred, "q4_0").moved;
  const rounding::KeyShape& keys = head.keys;
  if (centred < head.most_by_token() / 2)
    return fmt::format(
        "because its keys have a constant part {} times the size of what differs between tokens, "
        "largest in channel {} (mean {:.3g}); without it q4_0 moves {}",
        constant_text(keys), keys.channel, keys.mean, percent(centred));
  if (!keys.outliers.empty())
    return fmt::format("because of {} of its keys more than {} times as large as the median channel ({})",
                       keys.outliers.size() == 1 ? "a channel" : "channels", rounding::outlier_factor,
                       channels_text(keys.outliers));
  return fmt::format("though its keys have no outlier channel, and without their constant part q4_0 still moves {}",
                     percent(centred));
}

/// "q5_1 moves 48 % of the attention of kv head 1 to other tokens (q4_0 27 %, q8_0 12 %)": the formats by token.
std::string moves_text(const HeadRounding& head, bool texts) {
  std::vector<std::pair<std::string, double>> moves;
  for (std::size_t f = 0; f < head.formats.size(); ++f) {
    if (rounding::key_formats()[f].family == Family::by_token)
      moves.emplace_back(rounding::key_formats()[f].name(), head.formats[f].moved);
  }
  std::ranges::stable_sort(moves, std::greater(), &std::pair<std::string, double>::second);
  std::vector<std::string> others;
  for (const auto& [name, moved] : std::span(moves).subspan(1))
    others.push_back(fmt::format("{} {}", name, percent(moved)));
  return fmt::format("{} moves {} of the attention of {} to other tokens ({})", moves.front().first,
                     percent(moves.front().second), place_text(head, texts), fmt::join(others, ", "));
}

std::vector<std::string> sentences_of(const std::vector<const HeadRounding*>& layers, bool texts) {
  const HeadRounding& worst = *layers.front();
  if (std::isnan(worst.most_by_token()))
    return {fmt::format("Cannot tell what rounding keys by token does to this model: {}.", worst.formats[0].reason)};
  const std::string limit = percent(rounding::most_moved);
  std::vector<std::int64_t> broken, unknown;
  for (const HeadRounding* layer : layers) {
    if (layer->most_by_token() > rounding::most_moved) broken.push_back(layer->layer);
    if (std::isnan(layer->most_by_token())) unknown.push_back(layer->layer);
  }
  std::vector<std::string> out;
  if (broken.empty()) {
    out.push_back(
        fmt::format("No layer breaks under keys rounded by token: at worst, in layer {}, {}; more than {} "
                    "would break it.",
                    worst.layer, moves_text(worst, texts), limit));
  } else {
    std::ranges::sort(broken);
    out.push_back(fmt::format("Layer {} breaks under keys rounded by token: {}, {}. {}", worst.layer,
                              moves_text(worst, texts), cause_of(worst), kept_by(worst)));
    out.push_back(fmt::format("More than {} moves in {} of {} layers: {}.", limit, broken.size(), layers.size(),
                              fmt::join(broken, ", ")));
  }
  if (!unknown.empty())
    out.push_back(fmt::format("Cannot be told of {} of {} layers ({}): {}.", unknown.size(), layers.size(),
                              fmt::join(unknown, ", "), layers.back()->formats[0].reason));
  return out;
}

DocTable table_of(const std::vector<const HeadRounding*>& heads, bool texts) {
  const auto moved = [](Family family, const char* method) {
    return [=](const HeadRounding& head) { return percent(head.of(family, method).moved); };
  };
  const auto bits = [](Family family) { return [=](const HeadRounding& head) { return bits_text(head, family); }; };
  return compact(filled<HeadRounding>(
      {},
      {{{"layer", true}, &HeadRounding::layer},
       {{"kv head", true}, &HeadRounding::kv_head},
       {{"text"}, [=](const HeadRounding& head) { return texts ? head.prompt : ""; }},
       {{"constant part", true}, [](const HeadRounding& head) { return constant_text(head.keys); }},
       {{"in channel", true}, [](const HeadRounding& head) { return std::to_string(head.keys.channel); }},
       {{"outliers"}, [](const HeadRounding& head) { return channels_text(head.keys.outliers); }},
       {{"q5_1 moves", true}, moved(Family::by_token, "q5_1")},
       {{"q4_0", true}, moved(Family::by_token, "q4_0")},
       {{"rotated", true}, moved(Family::rotated, "q4_0")},
       {{"centred", true}, moved(Family::centred, "q4_0")},
       {{"kivi4", true}, moved(Family::by_channel, "kivi4")},
       {{"bits by token", true}, bits(Family::by_token)},
       {{"rotated", true}, bits(Family::rotated)},
       {{"by channel", true}, bits(Family::by_channel)}},
      heads));
}

}  // namespace

std::vector<Block> rounding_blocks(std::span<const HeadRounding> heads, bool every_head) {
  std::vector<const HeadRounding*> all, layers;
  std::vector<std::string> prompts;
  for (const HeadRounding& head : heads) {
    all.push_back(&head);
    const auto same = [&](const HeadRounding* other) { return other->layer == head.layer; };
    if (std::ranges::none_of(layers, same)) layers.push_back(&head);
    if (std::ranges::find(prompts, head.prompt) == prompts.end()) prompts.push_back(head.prompt);
  }
  const bool texts = prompts.size() > 1;
  return {AnswerBlock{.scope = "", .sentences = sentences_of(layers, texts)},
          table_of(every_head ? all : layers, texts)};
}

}  // namespace kvbench::report
