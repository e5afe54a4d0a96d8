// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/read/labels.hpp>
#include <kvbench/report/replay/figures.hpp>
#include <kvbench/report/replay/sections.hpp>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::compare;
using namespace kvbench::replay;
using namespace kvbench::report;

namespace {

/// Two heads of one layer with the queries 10 .. 13, and the methods sink (errors 1 .. 4 and 5 .. 8) and h2o (only on
/// head 0).
class Results : public QueryResults {
 public:
  const std::string& path() const override { return path_; }
  const std::vector<QueryPlace>& places() const override { return places_; }
  const std::vector<QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override {
    if (configuration == 1 && place == 1) return std::nullopt;
    const auto base = static_cast<float>(4 * place);
    return QueryValues{.status = Status::ok, .reason = "", .values = {base + 1, base + 2, base + 3, base + 4}};
  }

  std::vector<QueryPlace> places_ = {place(0), place(1)};
  std::vector<QueryConfiguration> configurations_ = {{"sink", "", Budget::parse("25%")},
                                                     {"h2o", "", Budget::parse("25%")}};

 private:
  static QueryPlace place(Index head) {
    return {.run = "",
            .trace = "t.h5",
            .sha256 = "abc",
            .model = "",
            .prompt = "0",
            .protocol = "prefill",
            .query_head = head,
            .positions = {10, 11, 12, 13}};
  }
  std::string path_ = "raw.h5";
};

/// `labels`: of the rows and the results.
std::vector<Block> figures(Results results, const std::vector<std::string>& labels = {}) {
  std::vector<CsvTable> read{parse_csv(
      "run,trace,sha256,model,prompt,layer,kv_head,head,query,protocol,device,method,params,budget,status,reason,query_"
      "rows,context_tokens,budget_tokens,total_bytes,full_bytes,rel_err_mean,rel_err_lo,rel_err_hi,recall_mean,version,"
      "commit,isa\n"
      ",t.h5,abc,m,0,all,all,all,all,prefill,cpu,sink,,25%,ok,,8,100,25,25,100,4.5,,,,0.1,c,avx2\n"
      ",t.h5,abc,m,0,all,all,all,all,prefill,cpu,h2o,,25%,ok,,4,100,25,25,100,2.5,,,,0.1,c,avx2\n",
      "r.csv")};
  std::vector<QueryConfiguration>* const raw[] = {&results.configurations_};
  Labels(labels).apply(read, raw);
  const CsvTable* tables[] = {&read.front()};
  const QueryResults* files[] = {&results};
  const ReplaySection section = replay_sections(tables).at(0);
  return query_figures(section, section.parts[0], series_of(section.parts[0]), files);
}

std::vector<std::vector<std::string>> quantiles(const Figure& figure) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& row : figure.numbers.rows)
    rows.push_back({row[0].text, row[1].text, row[2].text, row[4].text, row[6].text, row[8].text});
  return rows;
}

}  // namespace

TEST_CASE("errors of single queries: quantiles over all heads, and means along the text") {
  const std::vector<Block> blocks = figures({});
  REQUIRE(blocks.size() == 1);
  const auto& figure = std::get<Figure>(blocks[0]);
  CHECK(figure.drawings.size() == 2);
  // Of 1 .. 8 the quantile q is the value at position 7 q, rounded: 0.7 -> 1, 3.5 -> 4, 6.3 -> 6; of 1 .. 4: 0.3, 1.5
  // -> 2, 2.7 -> 3.
  CHECK(quantiles(figure) == std::vector<std::vector<std::string>>{{"sink", "8", "2.00", "5.00", "7.00", "8.00"},
                                                                   {"h2o", "4", "1.00", "3.00", "4.00", "4.00"}});
}

TEST_CASE("errors of single queries are those of the method that a label shows") {
  const std::vector<Block> blocks = figures({}, {"sink=Ours"});
  REQUIRE(blocks.size() == 1);
  CHECK(quantiles(std::get<Figure>(blocks[0])) ==
        std::vector<std::vector<std::string>>{{"Ours", "8", "2.00", "5.00", "7.00", "8.00"},
                                              {"h2o", "4", "1.00", "3.00", "4.00", "4.00"}});
}

TEST_CASE("raw results of another trace, protocol or prompt are not drawn") {
  for (auto field : {&QueryPlace::sha256, &QueryPlace::protocol, &QueryPlace::run}) {
    Results other;
    for (QueryPlace& place : other.places_) place.*field = "other";
    CHECK(figures(other).empty());
  }
}

TEST_CASE("an attention map draws cells of equal colour as one rectangle, and a strip per method") {
  const AttentionMap map{.title = "t",
                         .description = "d",
                         .mass = {{1, 1, 0, 0.01}, {0, 0, 0, 1}},
                         .kept = {{"sink", {1, 0, 0, 0.5}}},
                         .tokens = 8};
  const std::string svg = svg_element(draw(map));
  const auto count = [&](const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1)) ++n;
    return n;
  };
  CHECK(count("h10v6") == 1);  // two columns of full attention
  CHECK(count("h15v6") == 1);  // three columns without
  CHECK(count("v14") == 3);    // kept: all, none, half
  CHECK(count("data-m=\"sink\"") == 1);
}
