// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// A trace whose context is 0 .. 4, with the queries at these positions, and with column sums or without.
struct Parts {
  Ids queries;
  bool sums;
};

const Parts without_3 = {{0, 1, 2, 4}, true};
const Parts without_4 = {{0, 1, 2, 3}, true};
const Parts last_two = {{3, 4}, true};
const Parts without_sums = {{0, 1, 2, 3, 4}, false};
const Parts last_two_without_sums = {{3, 4}, false};

struct Case {
  const char* method;
  std::vector<Assignment> settings;
  const Parts* trace;
  const char* message;  ///< in that of the error; empty where there is none
};

const std::vector<Case> cases = {
    {"snapkv", {{"window", "1"}}, &without_3, ""},
    {"snapkv", {{"window", "2"}}, &without_3,
     "snapkv needs the queries at the positions 3 .. 4, the end of the context, and there are 1 of these 2; lower "
     "snapkv.window, or replay a trace that has them all (--queries)"},
    {"pyramidkv", {{"window", "2"}}, &without_3,
     "pyramidkv needs the queries at the positions 3 .. 4, the end of the context, and there are 1 of these 2; "
     "lower pyramidkv.window, or replay a trace that has them all (--queries)"},
    {"tova", {}, &without_4,
     "tova needs the queries at the positions 4 .. 4, the end of the context, and there are 0 of these 1; replay a "
     "trace that has them all (--queries)"},
    {"rocketkv", {}, &last_two,
     "rocketkv needs the queries at the positions 0 .. 4, the end of the context, and there are 2 of these 5; lower "
     "rocketkv.window, or replay a trace that has them all (--queries)"},
    {"r-kv", {}, &last_two,
     "r-kv needs the queries at the positions 0 .. 4, the end of the context, and there are 2 of these 5; lower "
     "r-kv.window, or replay a trace that has them all (--queries)"},
    {"h2o-global", {}, &without_sums,
     "h2o-global needs the column sums up to the end of the context (5 tokens), and there are none; replay a "
     "trace that has them (--column-sums)"},
    {"h2o", {}, &without_sums,
     "h2o.prompt=columns needs the column sums up to the end of the context (5 tokens), and there are none; replay "
     "a trace that has them (--column-sums), or choose h2o.prompt=stream if there are all queries of the prompt"},
    {"h2o", {}, &last_two, ""},
    {"h2o", {{"prompt", "stream"}}, &without_sums, ""},
    {"h2o", {{"prompt", "stream"}}, &last_two,
     "h2o.prompt=stream needs the query of every token of the context, and there are 2 of 5; choose "
     "h2o.prompt=columns, or replay a trace that has them all (--queries all)"},
    {"cam", {}, &without_sums, ""},
    {"cam", {{"prompt", "columns"}}, &without_sums, "needs the column sums up to the end of the context"},
    {"cam", {{"prompt", "stream"}}, &last_two_without_sums, "needs the query of every token of the context (cam."},
    {"cam", {}, &last_two_without_sums,
     "cam.form=streaming merges the prompt's values by the attention that they have received and needs the query of "
     "every token of the context, or its column sums, and there are 2 of 5 queries and no column sums; choose "
     "cam.form=decode, which merges decoded tokens only, or replay a trace that has them (--queries all, or "
     "--column-sums)"},
    {"cam", {{"form", "eval"}}, &last_two_without_sums, "cam.form=eval merges the prompt's values"},
    {"cam", {{"form", "decode"}}, &last_two_without_sums, ""},
};

}  // namespace

TEST_CASE("methods name what a trace lacks, and need only what their settings read") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({0, 0, 0, 0, 0, 0}, 5);
  for (const auto& [method, settings, trace, message] : cases) {
    CAPTURE(method);
    HeadPrompt prompt = prompt_of(head, *backend);
    prompt.observed_positions = trace->queries;
    prompt.observed = prompt.observed.slice(0, static_cast<Index>(trace->queries.size()));
    if (!trace->sums) prompt.column_sums = {};
    const auto open = [&] { open_cache(method, settings, prompt, 3, 0, *backend); };
    if (std::string_view(message).empty()) CHECK_NOTHROW(open());
    else CHECK_THROWS_WITH_AS(open(), doctest::Contains(message), Unavailable);
  }
}
