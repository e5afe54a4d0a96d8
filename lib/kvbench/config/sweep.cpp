// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/sweep.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/config/field_names.hpp>
#include <kvbench/config/published.hpp>
#include <kvbench/config/run_keys.hpp>
#include <kvbench/core/name.hpp>

namespace kvbench::config {
namespace {

/// The members of a run other than its name, which is stored in `name`.
std::vector<Member> settings_of(const Value& table, std::string& name) {
  std::vector<Member> settings;
  for (const Member& member : table.members) {
    if (member.key == "name")
      name = text_of(member);
    else
      settings.push_back(member);
  }
  return settings;
}

/// The tables of the blocks [[name]].
const std::vector<Value>& blocks(const Value& list, const char* name) {
  const auto is_table = [](const Value& item) { return item.kind == Value::Kind::table; };
  if (list.kind != Value::Kind::list || !std::ranges::all_of(list.items, is_table)) {
    fail_at(list.place, "write each {0} as a block [[{0}]], with two brackets", name);
  }
  return list.items;
}

void check_run(const SweepRun& run) {
  if (run.request.methods.empty() && run.measures.empty()) {
    fail_at(run.place, "run '{}' has neither methods nor measures; add some, such as methods = [\"snapkv\"]", run.name);
  }
}

/// Throws Error unless the lists that `zip` joins have the same length.
void check_zip(const SweepRun& run) {
  for (const std::string& key : run.zip) {
    const std::size_t size = list_size(run, key), first = list_size(run, run.zip.front());
    if (size == 0) fail_at(run.places.at("zip"), "run '{}' joins '{}', which is not a list", run.name, key);
    if (size == first) continue;
    fail_at(run.places.at("zip"), "run '{}' joins lists of different lengths: {} items of '{}', {} of '{}'", run.name,
            first, run.zip.front(), size, key);
  }
}

class SweepReader {
 public:
  SweepReader(const std::string& path, const Value& root) : root_(root) {
    sweep_.file = path;
    sweep_.name = std::filesystem::path(path).stem().string();
  }

  Sweep read() {
    const Value *runs = nullptr, *published = nullptr;
    for (const Member& member : root_.members) {
      if (member.key == "name") {
        sweep_.name = text_of(member);
      } else if (member.key == "description") {
        sweep_.description = text_of(member);
      } else if (member.key == "defaults") {
        read_defaults(member);
      } else if (member.key == "run") {
        runs = &member.value;
      } else if (member.key == "published") {
        published = &member.value;
      } else {
        reject_key(member, {"name", "description", "defaults", "run", "published"}, "a sweep file");
      }
    }
    check_name(sweep_.name, "The name of the sweep file " + sweep_.file);
    if (runs == nullptr) throw Error("{}: has no run; add a block [[run]] with traces and methods", sweep_.file);
    read_runs(*runs);
    if (published == nullptr) return std::move(sweep_);
    for (const Value& table : blocks(*published, "published")) {
      for (Published& claim : read_published(table, sweep_.runs)) add_published(std::move(claim));
    }
    return std::move(sweep_);
  }

 private:
  void read_defaults(const Member& member) {
    if (member.value.kind != Value::Kind::table) {
      fail_at(member.place, "'defaults' is a block [defaults], not {}", describe(member.value));
    }
    set_run(member.value.members, defaults_);
  }

  void read_runs(const Value& runs) {
    blocks(runs, "run");
    if (runs.items.empty())
      fail_at(runs.place, "the list of runs is empty; add a block [[run]] with traces and methods");
    for (const Value& table : runs.items) {
      SweepRun run = defaults_;
      run.place = table.place;
      run.name = std::to_string(sweep_.runs.size() + 1);
      set_run(settings_of(table, run.name), run);
      check_run(run);
      check_zip(run);
      const auto twin = std::ranges::find(sweep_.runs, run.name, &SweepRun::name);
      if (twin != sweep_.runs.end()) {
        fail_at(run.place, "the run at {1} also has the name '{0}'; give each run a unique name", run.name,
                twin->place.text());
      }
      sweep_.runs.push_back(std::move(run));
    }
  }

  void add_published(Published block) {
    const auto twin =
        std::ranges::find(sweep_.published, block.claim.id, [](const Published& p) { return p.claim.id; });
    if (!block.claim.id.empty() && twin != sweep_.published.end()) {
      fail_at(block.place, "the block at {1} also has the id '{0}'; give each claim a unique id", block.claim.id,
              twin->place.text());
    }
    sweep_.published.push_back(std::move(block));
  }

  const Value& root_;
  Sweep sweep_;
  SweepRun defaults_;
};

}  // namespace

Sweep read_sweep(const std::string& path) { return SweepReader(path, read_toml(path)).read(); }
Sweep read_sweep(const std::string& path, const std::string& text) {
  return SweepReader(path, parse_toml(path, text)).read();
}

void use_traces(Sweep& sweep, const std::vector<std::string>& paths, const std::string& origin) {
  for (SweepRun& run : sweep.runs) {
    run.traces.clear();
    for (const std::string& path : paths) run.traces.push_back({path, {origin}});
  }
}

void throw_in_terms_of(const SweepRun& run, const std::string& where, const std::string& message) {
  const Place* place = &run.place;
  const std::string text = rename_fields(message, [&](std::string_view field) {
    const std::string key = key_of(field);
    const auto set = run.places.find(key);
    if (place == &run.place && set != run.places.end()) place = &set->second;
    return key.empty() ? key : "'" + key + "'";
  });
  fail_at(*place, "{}: {}", where, text);
}

}  // namespace kvbench::config
