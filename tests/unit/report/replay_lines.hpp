// SPDX-License-Identifier: Apache-2.0
// Small tables of a replay as text, and what a report makes of them.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include <support/messages.hpp>

#include <kvbench/report/replay/sections.hpp>
#include <kvbench/report/report.hpp>

namespace kvbench::report_test {

using testing::contains;

inline const std::string replay_header =
    "run,trace,sha256,model,prompt,layer,kv_head,head,query,protocol,device,method,params,budget,status,reason,query_"
    "rows,context_tokens,budget_tokens,total_bytes,full_bytes,rel_err_mean,rel_err_lo,rel_err_hi,recall_mean,version,"
    "commit,isa,bytes_read,best,tied,layers,model_layers,prompt_name\n";

struct Line {
  std::string run = "", prompt = "0", layer = "all", method = "sink", params = "", budget = "25%", status = "ok",
              reason = "";
  std::string error = "0.5,0.4,0.6", recall = "0.3", protocol = "prefill", kv_head = "all", trace = "t.h5";
  std::string held = "10", best = "", tied = "", head = "all", name = "";
};

inline std::string text(const Line& l) {
  const std::string bytes = l.status == "ok" ? fmt::format("100,40,{},50", l.held) : "100,,,";
  return fmt::format("{},{},abc,tiny,{},{},{},{},all,{},cpu,{},{},{},{},{},8,{},{},{},0.1,c0ffee,avx2,5,{},{},2,6,{}\n",
                     l.run, l.trace, l.prompt, l.layer, l.kv_head, l.head, l.protocol, l.method, l.params, l.budget,
                     l.status, l.reason, bytes, l.error, l.recall, l.best, l.tied, l.name);
}

inline report::CsvTable replay_table(const std::vector<Line>& lines, const std::string& file = "r.csv") {
  std::string csv = replay_header;
  for (const Line& l : lines) csv += text(l);
  return report::parse_csv(csv, file);
}

inline report::Document report_of(const std::vector<report::CsvTable>& tables,
                                  const report::ReportOptions& options = {}) {
  return report::make_report(tables, options);
}

/// Headings of sections; the last is that of the inputs.
inline std::vector<std::string> headings(const report::Document& document) {
  std::vector<std::string> out;
  for (const report::Block& block : document.blocks) {
    const auto* heading = std::get_if<report::Heading>(&block);
    if (heading != nullptr && heading->level == 2) out.push_back(heading->text);
  }
  return out;
}

inline std::vector<report::ReplaySection> sections(const std::vector<report::CsvTable>& tables) {
  std::vector<const report::CsvTable*> pointers;
  for (const report::CsvTable& table : tables) pointers.push_back(&table);
  return replay_sections(pointers);
}

using Texts = std::vector<std::string>;

/// The columns of checks and of measures.
inline const std::string check_header =
    "claim,part,kind,source,prompt,layer,kv_head,params,verdict,assumptions_text,literal,tight,data,bound,trivial,"
    "measured,measured_q99,failures,trials,allowed,p_adjusted,text,version,commit,units,units_needed\n";

inline const std::string measure_header =
    "run,trace,sha256,model,prompt,layer,kv_head,measure,array,x,value,count,version,commit\n";

}  // namespace kvbench::report_test
