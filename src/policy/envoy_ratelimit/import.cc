#include "policy/envoy_ratelimit/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "policy/envoy_ratelimit/guards.h"
#include "policy/envoy_ratelimit/service_config.h"
#include "policy/sections.h"

namespace weir::policy::envoy_ratelimit {
namespace {

constexpr size_t kMaxName = 64;

constexpr std::string_view kHead =
    "# Limits of envoyproxy/ratelimit, imported by `weir import envoy-ratelimit`.\n"
    "# They count in fixed windows, as that service does: up to twice the rate across an edge.\n"
    "# Windows of a minute, an hour or a day begin with it (UTC); the others begin at another\n"
    "# instant for each key. `algorithm: token_bucket` is the better choice where that is not "
    "asked\n"
    "# for. To use them: `include: [THIS FILE]` and `listen: {grpc: 127.0.0.1:8083}`.\n";

// In double quotes; `${` would ask for a variable.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\\') out += '\\';
    if (c == '$' && text.substr(i).starts_with("${")) out += '$';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

class Writer {
 public:
  std::string Write(const std::vector<ServiceDomain>& domains,
                    const std::vector<ConfigError>& notes) {
    for (const ServiceDomain& domain : domains) Reserve(domain.root);
    out_ = kHead;
    for (const ConfigError& note : notes) out_ += "# " + OneLine(ToString(note)) + "\n";
    out_ += "limits:\n";
    const size_t empty = out_.size();
    for (const ServiceDomain& domain : domains) {
      domain_ = &domain;
      guards_ = FindGuards(domain.root);
      Visit(domain.root);
    }
    if (out_.size() == empty) out_.replace(empty - 1, 1, " []\n");
    return out_;
  }

 private:
  static std::string OneLine(std::string text) {
    std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return text;
  }

  // Given names come first, so that a made one does not take them.
  void Reserve(const ServiceNode& node) {
    if (node.rate && IsName(node.rate->name)) names_.insert(node.rate->name);
    for (const auto& child : node.children) Reserve(*child);
  }

  // In the order of the tree, so that wildcards keep theirs.
  void Visit(const ServiceNode& node) {
    const Guards& guards = guards_[&node];
    if (node.rate) WriteLimit(node);
    if (guards.here) WriteGuard(path_);
    for (const auto& child : node.children) {
      path_.push_back(child->entry);
      Visit(*child);
      path_.pop_back();
    }
    for (const Entries& rest : guards.below) {
      Entries entries = path_;
      entries.insert(entries.end(), rest.begin(), rest.end());
      WriteGuard(entries);
    }
  }

  void WriteLimit(const ServiceNode& node) {
    const ServiceRate& rate = *node.rate;
    const bool named = IsName(rate.name) && given_.insert(rate.name).second;
    Begin(named ? rate.name : NameOf(path_), path_);
    if (rate.unlimited) {
      out_ += "rate: unlimited";
    } else {
      out_ += fmt::format("rate: {}/{}, algorithm: fixed_window", rate.requests, rate.period);
      const bool calendar = rate.period == "min" || rate.period == "hour" || rate.period == "day";
      if (calendar) out_ += ", align: calendar";
    }
    out_ += node.shadow ? ", enforce: shadow}\n" : "}\n";
  }

  void WriteGuard(const Entries& entries) {
    Begin(NameOf(entries), entries);
    out_ += "rate: unlimited}  # The service has no limit here.\n";
  }

  void Begin(const std::string& name, const Entries& entries) {
    out_ += fmt::format("  - {{name: {}, domain: {}, descriptor: [", Quoted(name),
                        Quoted(domain_->name));
    for (size_t i = 0; i < entries.size(); ++i) {
      out_ += fmt::format("{}{{key: {}", i > 0 ? ", " : "", Quoted(entries[i].key));
      if (entries[i].kind != EntryPattern::Kind::kAnyValue)
        out_ += ", value: " + Quoted(entries[i].value);
      out_ += "}";
    }
    out_ += "], ";
  }

  // "mongo_cps.database-users", made unique.
  std::string NameOf(const Entries& entries) {
    std::string base = domain_->name;
    for (const EntryPattern& entry : entries) {
      base += "." + entry.key;
      if (entry.kind != EntryPattern::Kind::kAnyValue) base += "-" + entry.value;
    }
    for (char& c : base) {
      const bool fits =
          std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
      if (!fits) c = '_';
    }
    base.resize(std::min(base.size(), kMaxName));
    std::string name = base;
    for (int n = 2; !names_.insert(name).second; ++n) {
      const std::string tail = "-" + std::to_string(n);
      name = base.substr(0, kMaxName - tail.size()) + tail;
    }
    return name;
  }

  std::string out_;
  std::unordered_set<std::string> names_;  // Taken.
  std::unordered_set<std::string> given_;  // Of those, written already as the service gave them.
  const ServiceDomain* domain_ = nullptr;
  std::map<const ServiceNode*, Guards> guards_;
  Entries path_;
};

template <typename Read>
Imported ImportBy(Read&& read) {
  YamlReader reader([](std::string_view) { return std::nullopt; });
  std::vector<ServiceDomain> domains;
  std::vector<Leftover> leftovers;
  read(reader, domains, leftovers);
  Imported imported;
  for (const Leftover& leftover : leftovers) {
    imported.notes.push_back(
        {leftover.place.file, leftover.place.line, leftover.place.column, leftover.what});
  }
  if (reader.has_errors()) {
    imported.errors = reader.TakeErrors();
  } else {
    imported.yaml = Writer().Write(domains, imported.notes);
  }
  return imported;
}

}  // namespace

Imported Import(const std::vector<std::string>& paths) {
  return ImportBy([&](YamlReader& reader, auto& domains, auto& leftovers) {
    for (const std::string& path : paths) ReadServiceFile(reader, path, domains, leftovers);
  });
}

Imported ImportText(const std::string& text, const std::string& name) {
  return ImportBy([&](YamlReader& reader, auto& domains, auto& leftovers) {
    ReadServiceText(reader, text, name, domains, leftovers);
  });
}

}  // namespace weir::policy::envoy_ratelimit
