// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/options.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench::kvdump;

namespace {

ParsedOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kvdump");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("defaults") {
  const auto options = parse({"m.gguf", "--text", "t.txt", "-o", "t.h5"}).options.value();
  CHECK(options.model == "m.gguf");
  CHECK(options.output == "t.h5");
  CHECK(options.texts == std::vector<std::string>{"t.txt"});
  CHECK(options.layers == "all");
  CHECK(options.queries.kind == QuerySpec::tail);
  CHECK(options.dtype == kvbench::trace::Dtype::f32);
  CHECK((options.check && options.column_sums));
  CHECK_FALSE((options.ctx || options.prompt_tokens || options.force || options.f32 || options.speculated));
}

TEST_CASE("repeated prompts and every flag") {
  const auto options = parse({"m.gguf",
                              "--text",
                              "a",
                              "--text",
                              "b",
                              "--ids",
                              "c",
                              "-o",
                              "t.h5",
                              "--layers",
                              "0,1",
                              "--queries",
                              "last:9",
                              "--prompt-tokens",
                              "7",
                              "--ctx",
                              "70",
                              "--dtype",
                              "bf16",
                              "--pre-rope",
                              "--no-column-sums",
                              "--speculated",
                              "--attention-output",
                              "--f32",
                              "--compress",
                              "--threads",
                              "3",
                              "--no-check",
                              "--force",
                              "--quiet"})
                           .options.value();
  CHECK(options.texts == std::vector<std::string>{"a", "b"});
  CHECK(options.ids == std::vector<std::string>{"c"});
  CHECK(options.layers == "0,1");
  CHECK(options.queries.count == 9);
  CHECK(options.prompt_tokens == 7);
  CHECK(options.ctx == 70);
  CHECK(options.dtype == kvbench::trace::Dtype::bf16);
  CHECK(options.threads == 3);
  CHECK((options.pre_rope && options.speculated && options.attention_output && options.f32 && options.compress));
  CHECK((options.force && options.quiet && options.sketch && !options.tokens_only));
  CHECK_FALSE((options.check || options.column_sums));
}
