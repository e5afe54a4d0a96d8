// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/methods/contract/of_heads.hpp>
#include <kvbench/session/session.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// Holds token 0, takes a fixed number of tokens, and writes down what it is asked: "append0" by head 0.
class Logged : public CompressedCache {
 public:
  Logged(std::string head, Index takes, std::vector<std::string>& log, Backend& backend)
      : head_(std::move(head)), takes_(takes), log_(log), backend_(backend) {}
  Index takes(const TokenBlock&) override {
    note("takes");
    return takes_;
  }
  void append(const TokenBlock& tokens) override { note(fmt::format("append {} to ", tokens.size())); }
  void announce(const QueryBlock&) override { note("announce"); }
  EntryTables entries(const QueryBlock&) const override {
    note("entries");
    return {{.ids = backend_.adopt(std::vector<std::int32_t>{0}, 1, 1)}};
  }
  void observe(const QueryBlock&, const EntryTables&, std::span<const Buffer<const float>> weights) override {
    note(fmt::format("observe {} by ", backend_.read(weights[0])[0]));
  }
  Footprint footprint() const override { return {}; }
  std::vector<Note> notes() const override { return {{"heads", 1}}; }

 private:
  void note(const std::string& what) const { log_.push_back(what + head_); }

  std::string head_;
  Index takes_;
  std::vector<std::string>& log_;
  Backend& backend_;
};

struct TwoHeads {
  HeadData head = small_head({1, 2, 3, 4, 5}, 1);
  std::vector<std::string> log;

  Session session(Index first_takes, Index second_takes, bool observes = false) {
    Caches caches;
    caches.push_back(std::make_unique<Logged>("0", first_takes, log, ref()));
    caches.push_back(std::make_unique<Logged>("1", second_takes, log, ref()));
    return {std::move(caches), 1, observes, ref()};
  }
  /// Appends the tokens 1 to 4.
  Index append(Session& session) const { return session.append(std::vector(2, token_block(head, 1, 5, ref()))); }
};

using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("a session ends each phase of a step on all heads before the next begins") {
  TwoHeads two;
  Session session = two.session(1, 1, true);
  REQUIRE(two.append(session) == 1);
  CHECK(session.tokens() == 2);
  const QueryBlock block = query_block(two.head, 1, 2, 2, ref());
  const auto& tables = session.entries({block, block});
  for (std::size_t h = 0; h < 2; ++h) {
    const HeadTokens tokens = tokens_of(two.head, 2, ref());
    CHECK(session.checked(h, tokens).front().row(0)[0] == 0);
    const HostState sums = session.attend(h, tokens, block, tables[h], empty_state(ref(), 1, 1));
    CHECK(sums.num[0] / sums.den[0] == 1);  // the value of token 0
  }
  session.observe();
  CHECK(two.log == Log{"takes0", "takes1", "append 1 to 0", "append 1 to 1", "announce0", "announce1", "entries0",
                       "entries1", "observe 1 by 0", "observe 1 by 1"});
  REQUIRE(session.notes().size() == 1);
  CHECK(session.notes()[0].count == 2);
}

TEST_CASE("all heads of a session take as many tokens as the one that takes the fewest") {
  TwoHeads two;
  Session session = two.session(3, 2);
  CHECK(two.append(session) == 2);
  CHECK(two.log == Log{"takes0", "takes1", "append 2 to 0", "append 2 to 1"});
  two.log.clear();
  session.observe();
  CHECK(two.log.empty());  // the method does not observe
}

TEST_CASE("a session refuses caches that take nothing, or more than there is") {
  TwoHeads two;
  for (const Index takes : {0, 5}) {
    Session session = two.session(4, takes);
    CHECK_THROWS_WITH_AS(two.append(session), fmt::format("takes() of 4 tokens returned {}", takes).c_str(),
                         std::logic_error);
    CHECK(session.tokens() == 1);
  }
}

TEST_CASE("what heads bring is complete with the last of them, and begins anew with the next") {
  OfHeads<int> parts(2);
  CHECK_FALSE(parts.add(1, 10));
  CHECK_THROWS_WITH_AS(parts.add(1, 11), doctest::Contains("comes twice"), std::logic_error);
  CHECK_THROWS_WITH_AS(parts.all(), doctest::Contains("before all others have come"), std::logic_error);
  CHECK(parts.add(0, 20));
  CHECK(parts.all() == std::vector<int>{20, 10});
  CHECK_FALSE(parts.add(0, 21));
  CHECK(parts.add(1, 12));
  CHECK(parts.all() == std::vector<int>{21, 12});
}
