// SPDX-License-Identifier: Apache-2.0
// What a method holds at every time of a stream.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/session/session.hpp>

namespace kvbench::bounds {

/// An entry of a cache; wN and wD as in EntryTable.
struct HeldEntry {
  TokenId id = -1;
  double num = 1, den = 1;
  std::vector<double> key, value;  ///< of merged entries; empty: those of the token
};

/// The entries of a cache after `tokens` tokens of the stream, by increasing id.
struct Snapshot {
  Index tokens = 0;
  std::vector<HeldEntry> held;
};

/// A context of `prompt` tokens, after which `appended` tokens arrive one by one.
struct StreamPlan {
  Index prompt = 0, appended = 0;
  Index budget = 1;
  std::uint32_t seed = 0;
  std::string text() const;  ///< for CheckRow::params
};

/// The implementation under test. Mutants replace it.
using MethodUnderTest = std::function<methods::MakeCache(const methods::HeadPrompt&, Backend&)>;
MethodUnderTest registered_method(const std::string& name, const std::vector<methods::Assignment>& settings = {});

/// Appends the next token of the subject.
void append_token(Session& session, const Subject& subject);

/// The entries after the prompt and after each appended token: appended + 1 snapshots. With an empty prompt the keys of
/// the stream are the calibration keys.
std::vector<Snapshot> observe_stream(const Subject& subject, const StreamPlan& plan, const MethodUnderTest& method,
                                     Backend& backend);

}  // namespace kvbench::bounds
