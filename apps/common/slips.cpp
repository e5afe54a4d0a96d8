// SPDX-License-Identifier: Apache-2.0
#include <apps/common/slips.hpp>

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include <kvbench/core/name.hpp>

namespace kvbench::app {
namespace {

struct Slip {
  std::string_view written;  ///< in lower case, with dashes for _, without those in front
  const char* needs;         ///< what must exist for `right` to hold; "": nothing
  std::string_view right;
};

constexpr Slip commands[] = {
    {"list", "methods", "kvbench methods, which lists all methods"},
    {"ls", "methods", "kvbench methods, which lists all methods"},
    {"method", "methods", "kvbench methods"},
    {"plot", "report", "kvbench report, which draws figures from tables; --figure writes one alone"},
    {"figure", "report", "kvbench report with --figure"},
    {"figures", "report", "kvbench report with --figure"},
    {"html", "report", "kvbench report"},
    {"dump", "replay", "kvdump or kvbench-dump-hf, which record a trace of a model"},
    {"record", "replay", "kvdump or kvbench-dump-hf, which record a trace of a model"},
    {"choose", "allocate", "kvbench-choose, a program of the Python package"},
    {"kvdump", "replay", "kvdump alone: it is a program of its own"},
    {"kveval", "eval", "kvbench eval, which runs kveval, or kveval alone"},
    {"run", "replay", "kvbench replay, or kvbench sweep for a sweep file"},
    {"bench", "replay", "kvbench replay, or kvbench sweep for a sweep file"},
    {"check", "validate", "kvbench validate, or kvbench methods NAME --check for the contract of a method"},
    {"test", "validate", "kvbench validate, or kvbench methods NAME --check for the contract of a method"},
    {"claims", "validate", "kvbench validate, or kvbench compare --sweep for those of a sweep file"},
    {"verify-golden", "validate", "kvbench validate golden"},
    {"golden", "validate", "kvbench validate golden"},
    {"diff", "compare", "kvbench compare"},
    {"cmp", "compare", "kvbench compare"},
    {"generate", "synth", "kvbench synth"},
    {"trace", "info", "kvbench info"},
    {"scores", "replay", "--method scores:FILE.h5, whose scores kvbench-dump-hf --scores records"},
    {"show", "info", "kvbench info"},
    {"describe", "info", "kvbench info"},
};

/// Where a word has several rows, the first that holds answers.
constexpr Slip flags[] = {
    {"json", "--format", "--format json"},
    {"csv", "--format", "--format csv"},
    {"md", "--format", "--format md"},
    {"markdown", "--format", "--format md"},
    {"table", "--format", "--format table"},
    {"out", "--output", "-o FILE"},
    {"outfile", "--output", "-o FILE"},
    {"output-file", "--output", "-o FILE"},
    {"save", "--output", "-o FILE"},
    {"v", "--verbose", "--verbose, or kvbench version"},
    {"v", "--version", "--version"},
    {"v", "", "kvbench version"},
    {"version", "", "kvbench version"},
    {"debug", "--verbose", "--verbose"},
    {"silent", "--quiet", "--quiet"},
    {"t", "--threads", "--threads"},
    {"n-threads", "--threads", "--threads"},
    {"num-threads", "--threads", "--threads"},
    {"workers", "--threads", "--threads"},
    {"jobs", "--threads", "--threads"},
    {"force", "--overwrite", "--overwrite, which discards stored cells"},
    {"overwrite", "--force", "--force"},
    {"force", "--output", "the command without it: a file of results is replaced"},
    {"overwrite", "--output", "the command without it: a file of results is replaced"},
    {"gpu", "--device", "--device cuda"},
    {"cuda", "--device", "--device cuda"},
    {"cpu", "--device", "--device cpu"},
    {"ratio", "--budget", "--budget with the share that is kept: 25%mem is a quarter of the memory"},
    {"keep", "--budget", "--budget with the share that is kept: 25%mem is a quarter of the memory"},
    {"keep-ratio", "--budget", "--budget with the share that is kept: 25%mem is a quarter of the memory"},
    {"compression-ratio", "--budget",
     "--budget with the share that is kept: a compression ratio of 0.75 in kvpress is --budget 25%"},
    {"mem", "--budget", "--budget 25%mem for the memory of a cache, --memory 8G for that of the run"},
    {"tokens", "--budget", "--budget with a number of tokens, such as --budget 256"},
    {"press", "--method", "--method; presses of kvpress run in Python, by kvbench.from_kvpress()"},
    {"ctk", "--method", "--method with the format of the cache, such as --method q8_0"},
    {"ctv", "--method", "--method with the format of the cache, such as --method q8_0"},
    {"cache-type-k", "--method", "--method with the format of the cache, such as --method q8_0"},
    {"cache-type-v", "--method", "--method with the format of the cache, such as --method q8_0"},
    {"kv-cache-dtype", "--method", "--method with the format of the cache, such as --method fp8"},
    {"method", "--menu", "--menu"},
    {"methods", "--menu", "--menu"},
    {"m", "--menu", "--menu"},
    {"heads", "--kv-heads", "--query-heads or --kv-heads"},
    {"dim", "--head-dim", "--head-dim"},
    {"n", "--prompt-tokens", "--tokens"},
    {"limit", "--documents", "--documents"},
    {"limit", "--queries", "--queries, or --layers and --heads"},
    {"limit", "--prompts", "--prompts, --layers or --heads with those that you want"},
    {"num-samples", "--documents", "--documents"},
    {"ctx", "--context", "--context"},
    {"c", "--context", "--context"},
    {"context", "--ctx", "--ctx"},
    {"c", "--ctx", "--ctx"},
    {"max-length", "--context", "--context"},
    {"max-length", "--ctx", "--ctx"},
    {"trace", "--traces", "--traces"},
    {"trace", "", "the file of the trace without a flag"},
    {"input", "", "the input file without a flag"},
    {"i", "", "the input file without a flag"},
    {"model", "", "the file of the model without a flag"},
    {"f", "--text", "--text FILE"},
    {"f", "--format", "--format"},
    {"prompt-file", "--text", "--text FILE"},
    {"dataset", "--text", "--text FILE"},
    {"kind", "", "the family without a flag, as in kvbench methods eviction"},
    {"registered", "--task", "kvbench eval --registered once, which runs kveval for a claim"},
    {"list", "name", "kvbench methods alone"},
    {"list", "--clear", "kvbench cache alone"},
};

}  // namespace

std::string right_word(std::string_view written, const std::function<bool(const std::string&)>& has) {
  std::string plain(written.substr(std::min(written.find_first_not_of('-'), written.size())));
  std::ranges::transform(plain, plain.begin(), [](char c) { return c == '_' ? '-' : lower_case(c); });
  const auto holds = [&](const Slip& slip) {
    return slip.written == plain && (*slip.needs == '\0' || has(slip.needs));
  };
  const std::span<const Slip> slips = written.starts_with('-') ? std::span<const Slip>(flags) : commands;
  const auto found = std::ranges::find_if(slips, holds);
  return found == slips.end() ? "" : fmt::format(" Write {}.", found->right);
}

}  // namespace kvbench::app
