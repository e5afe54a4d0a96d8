// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/standing.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using evidence::Mark;
using evidence::Standing;

/// "a (1.27 times)" where the ratio was tested, else "a (0.1)", "a (KL 0.1)".
std::string listed_mark(const Mark& mark, const StandingWords& words) {
  if (words.table) return mark.name;
  if (!std::isnan(mark.interval.lo)) return fmt::format("{} ({:.3g} times)", mark.name, mark.ratio);
  return fmt::format("{} ({}{})", mark.name, words.unit, short_number(mark.mean));
}

std::string listed_marks(const std::vector<Mark>& marks, const StandingWords& words,
                         std::vector<std::string> first = {}) {
  for (const Mark& mark : marks) first.push_back(listed_mark(mark, words));
  return listed_up_to(std::move(first));
}

/// The first one that is worse. Those that no test tells from the best may have larger ratios, if they differ more
/// from text to text: then it is not "the next".
std::string next_text(const Standing& s, const StandingWords& words) {
  const Mark* next = s.next();
  if (next == nullptr || words.table) return "";
  const bool in_order = s.tied.empty() || !(s.tied.back().ratio > next->ratio);
  const char* can = in_order ? "" : ", can";
  if (!std::isfinite(next->ratio)) return fmt::format("; the next is {}", listed_mark(*next, words));
  std::string out = fmt::format("; {}{}{} with {:.3g} times the {}", in_order ? "the next is " : "", next->name,
                                in_order ? "" : ",", next->ratio, words.quantity);
  if (!std::isnan(next->interval.lo))
    out += fmt::format(" (adjusted 95 % interval {} to {})", short_number(next->interval.lo),
                       short_number(next->interval.hi));
  return out + can;
}

/// Over what the rows were tested, and how far that carries.
std::string tested_text(const Standing& s) {
  const std::string units = s.tested_over();
  if (units.empty()) return "";
  const bool few = units == "3 texts" || units == "4 texts";  // and all layers
  return fmt::format(" Tested over {}{}.", units,
                     units.ends_with("queries") || units.ends_with("probes of layers")
                         ? ", for the replayed layers and texts alone"
                     : units.find(" on th") != units.npos                     ? ""
                     : units.ends_with("layers") || units.ends_with("probes") ? ", for the replayed texts alone"
                     : few ? ", which leave much undecided; five texts or more decide most"
                           : "");
}

}  // namespace

std::string standing_sentence(const Standing& s, const StandingWords& words) {
  if (s.is_undecided()) {
    const std::vector<Mark>& others = s.tied.empty() ? s.untested : s.tied;
    const std::string best = fmt::format("{} ({})", s.best.name, words.best);
    return fmt::format("{}, {} cannot tell which method {}: {}.{}", words.at, words.rows, words.is_best,
                       listed_marks(others, words, {best}), tested_text(s));
  }
  const std::string of = s.compared() > 1 ? fmt::format(" of the {} methods run", s.compared()) : "";
  std::string out = fmt::format("{}, {} {}{} ({})", words.at, s.best.name, words.is_best, of, words.figures);
  if (!s.tied.empty())
    out += fmt::format("; {} cannot be told from it{}", listed_marks(s.tied, words), words.table ? " (~)" : "");
  return out + next_text(s, words) + "." + tested_text(s);
}

std::string untested_sentence(const Standing& s, const StandingWords& words) {
  if (s.untested.empty()) return "";
  return fmt::format(
      "{}. {}", s.tested() == 0 ? "Nothing was tested" : "Not tested against it: " + listed_marks(s.untested, words),
      words.needs);
}

}  // namespace kvbench::report
