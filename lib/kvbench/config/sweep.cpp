// SPDX-License-Identifier: Apache-2.0
#include <kvbench/config/sweep.hpp>

#include <algorithm>
#include <filesystem>

#include <kvbench/config/field_names.hpp>
#include <kvbench/config/run_keys.hpp>

namespace kvbench::config {
namespace {

const std::string& text_of(const Member& member) {
  if (member.value.kind != Value::Kind::text) {
    fail_at(member.value.place, "'{}' takes a text, not {}", member.key, describe(member.value));
  }
  return member.value.text;
}

/// [{run = "paper", method = "uniform"}, ...]
std::vector<std::vector<std::pair<std::string, std::string>>> read_rows(const Member& member) {
  std::vector<std::vector<std::pair<std::string, std::string>>> rows;
  const Value& list = member.value;
  if (list.kind != Value::Kind::list) fail_at(list.place, "'rows' takes a list of tables, not {}", describe(list));
  for (const Value& item : list.items) {
    if (item.kind != Value::Kind::table) fail_at(item.place, "'rows' takes tables such as {{ method = \"uniform\" }}");
    auto& row = rows.emplace_back();
    for (const Member& column : item.members) {
      if (column.value.kind == Value::Kind::list || column.value.kind == Value::Kind::table) {
        fail_at(column.value.place, "'{}' takes a value, not {}", column.key, describe(column.value));
      }
      row.emplace_back(column.key, column.value.text);
    }
  }
  return rows;
}

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
    fail_at(run.places.at("zip"), "run '{}' joins lists of different lengths: {} items of '{}', {} of '{}'", run.name, first,
            run.zip.front(), size, key);
  }
}

Published read_published(const Value& table) {
  Published out{.place = table.place};
  for (const Member& member : table.members) {
    if (member.key == "claim") {
      out.claim = text_of(member);
    } else if (member.key == "paper") {
      out.paper = text_of(member);
    } else if (member.key == "metric") {
      out.metric = text_of(member);
    } else if (member.key == "why") {
      out.why = text_of(member);
    } else if (member.key == "rows") {
      out.rows = read_rows(member);
    } else {
      reject_key(member, {"claim", "paper", "metric", "rows", "why"}, "a block [[published]]");
    }
  }
  if (out.claim.empty() || out.metric.empty() || out.rows.empty()) {
    fail_at(out.place, "a block [[published]] needs 'claim', 'metric' and 'rows'");
  }
  return out;
}

class SweepReader {
 public:
  explicit SweepReader(const std::string& path) {
    sweep_.file = path;
    sweep_.name = std::filesystem::path(path).stem().string();
  }

  Sweep read() {
    const Value root = read_toml(sweep_.file);
    const Value* runs = nullptr;
    for (const Member& member : root.members) {
      if (member.key == "name") {
        sweep_.name = text_of(member);
      } else if (member.key == "description") {
        sweep_.description = text_of(member);
      } else if (member.key == "defaults") {
        read_defaults(member);
      } else if (member.key == "run") {
        runs = &member.value;
      } else if (member.key == "published") {
        for (const Value& table : blocks(member.value, "published")) sweep_.published.push_back(read_published(table));
      } else {
        reject_key(member, {"name", "description", "defaults", "run", "published"}, "a sweep file");
      }
    }
    if (runs == nullptr) throw Error("{}: has no run; add a block [[run]] with traces and methods", sweep_.file);
    read_runs(*runs);
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
    if (runs.items.empty()) fail_at(runs.place, "the list of runs is empty; add a block [[run]] with traces and methods");
    for (const Value& table : runs.items) {
      SweepRun run = defaults_;
      run.place = table.place;
      run.name = std::to_string(sweep_.runs.size() + 1);
      set_run(settings_of(table, run.name), run);
      check_run(run);
      check_zip(run);
      const auto twin = std::ranges::find(sweep_.runs, run.name, &SweepRun::name);
      if (twin != sweep_.runs.end()) {
        fail_at(run.place, "the run at {1} has the name '{0}' too; give each run a name of its own", run.name,
                twin->place.text());
      }
      sweep_.runs.push_back(std::move(run));
    }
  }

  Sweep sweep_;
  SweepRun defaults_;
};

}  // namespace

Sweep read_sweep(const std::string& path) { return SweepReader(path).read(); }

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
