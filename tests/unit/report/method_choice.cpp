// SPDX-License-Identifier: Apache-2.0
// Which methods a report shows, how it tells the reader's own apart, and methods by budgets for papers.
#include <kvbench/report/read/method_choice.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/document/writers.hpp>
#include <unit/report/replay_lines.hpp>

using namespace kvbench;
using namespace kvbench::report;
using namespace kvbench::report_test;

TEST_CASE("a report of some methods has their rows alone, with all or with the named parameters") {
  const std::vector<CsvTable> all = {
      replay_table(
          {{}, {.method = "subgen"}, {.method = "subgen", .params = "t=7"}, {.method = "h2o", .budget = "50%"}}),
      replay_table({{.method = "h2o", .protocol = "decode"}}, "d.csv"),
      parse_csv(check_header + std::string(25, ',') + "\n", "c.csv")};
  const auto kept = [&](const std::vector<std::string>& names) {
    std::vector<CsvTable> tables = all;
    keep_methods(tables, names);
    Texts out;
    for (const CsvTable& table : tables) {
      for (const CsvRow& row : table.rows)
        out.push_back(table.file + " " + table.text(row, "method") + " " + table.text(row, "params"));
    }
    return out;
  };
  CHECK(kept({"subgen"}) == Texts{"r.csv subgen ", "r.csv subgen t=7", "c.csv  "});
  CHECK(kept({"Subgen[t=7]", "sink"}) == Texts{"r.csv sink ", "r.csv subgen t=7", "c.csv  "});
  CHECK(kept({"subgen[]"}) == Texts{"r.csv subgen ", "c.csv  "});
  CHECK(kept({"h2o"}) == Texts{"r.csv h2o ", "d.csv h2o ", "c.csv  "});
  CHECK_THROWS_WITH_AS(
      kept({"sink", "subgem"}),
      "--method subgem: no row is of this method. Did you mean 'subgen'? The rows are of sink, subgen, "
      "subgen[t=7], h2o.",
      Error);
  CHECK_THROWS_WITH_AS(kept({"subgen[t=5]"}), doctest::Contains("--method subgen[t=5]: no row"), Error);
  CHECK_THROWS_AS(kept({"[t=5]"}), Error);
}

TEST_CASE("own methods have styles by their names, the same in all figures, whatever the order and the errors") {
  const auto lines = [](const char* protocol, bool swapped) {
    return std::vector<Line>{{.method = "h2o", .protocol = protocol},
                             {.method = "./mine.py:B", .error = swapped ? "0.1,," : "0.9,,", .protocol = protocol},
                             {.method = "./mine.py:A", .error = "0.5,,", .protocol = protocol},
                             {.method = "unheard-of", .params = "a=1", .error = "0.4,,", .protocol = protocol}};
  };
  const std::string page =
      html(report_of({replay_table(lines("decode", true)), replay_table(lines("prefill", false))}));
  const auto drawn = [&](const std::string& group) {
    std::size_t count = 0;
    for (std::size_t at = page.find("<g " + group); at != page.npos; at = page.find("<g " + group, at + 1)) ++count;
    return count;
  };
  CHECK(drawn("class=\"own\" data-m=\"./mine.py:A\">") == 2);  // the error by method of both sections
  CHECK(drawn("class=\"own o1\" data-m=\"./mine.py:B\">") == 2);
  CHECK(drawn("class=\"own o2\" data-m=\"unheard-of a=1\">") == 2);
  CHECK(drawn("class=\"k0\" data-m=\"h2o\">") == 2);
  CHECK(has(page, ">unheard-of a=1</text>\n</g>"));  // and a legend of its own
}

TEST_CASE("methods by budgets for LaTeX: the best bold, what cannot be told from it underlined, untested rows marked") {
  const Document document =
      report_of({replay_table({{.budget = "12.5%", .error = "0.5,,", .best = "h2o", .tied = "1"},
                               {.error = "0.4,,", .best = "sink", .tied = "1"},
                               {.method = "h2o", .budget = "12.5%", .error = "0.45,,", .best = "h2o", .tied = "1"},
                               {.method = "h2o", .error = "0.6,,", .best = "sink", .tied = "0"},
                               {.method = "cam", .error = "0.7,,", .best = "sink"},
                               {.method = "cam", .budget = "50%", .error = "0.1,,"},
                               {.method = "h2o", .budget = "50%", .error = "0.2,,"},
                               {.method = "random", .error = "0.3,,"}})});
  const std::string text = latex(document);
  CHECK(has(text,
            "\\caption{Mean relative error by method and budget. Bold: the best of a budget; underlined: not "
            "distinguishable from it; ?: not tested against it; without marks: not tested}"));
  CHECK(has(text,
            "method & 12.5\\% & 25\\% & 50\\% \\\\\n\\midrule\n"
            "sink & \\underline{0.500} & \\textbf{0.400} & -- \\\\\n"
            "h2o & \\textbf{0.450} & 0.600 & 0.200 \\\\\n"
            "cam & -- & 0.700? & 0.100 \\\\\n"
            "random & -- & 0.300 & -- \\\\\n\\bottomrule"));
  CHECK(!has(html(document), "by method and budget"));
  CHECK(!has(markdown(document), "by method and budget"));
}
