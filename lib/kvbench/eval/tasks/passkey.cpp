// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/tasks/rows.hpp>

#include <kvbench/eval/tasks/assemble.hpp>

namespace kvbench::eval {
namespace {

TaskDocument make_passkey(const TaskRequest& request, Index document) {
  TaskDraws draws(request.seed, "passkey", document);
  const std::string key = FreshTexts(request, draws).number();
  const std::string lead = "The pass key is <";
  const double depth = spread_depths(request, document, 1, draws).front();
  const std::vector<Needle> needles = {{{lead, key, ">. Remember it: <", key, "> is the pass key.\n"}, depth}};
  return assemble(request, haystack_filler(request, document, draws), needles,
                  {{"What is the pass key?", lead, {{key, ">.", 0}}}});
}

}  // namespace

TaskInfo passkey_task() {
  return {.name = "passkey",
          .measures =
              "whether one statement in unrelated text can be found again, in a form that small base models complete "
              "by induction",
          .form =
              "`The pass key is <12345>. Remember it: <12345> is the pass key.` within the text file; the question is "
              "`The pass key is <`; one answer per document",
          .exact_match = true,
          .make = make_passkey};
}

}  // namespace kvbench::eval
