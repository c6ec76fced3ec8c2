// Readers of the configuration's sections, from YAML to the structs of config.h.
//
//   YamlReader reader(env);
//   Config config;
//   ReadListen(reader, *node, config.listen);     // mistakes are noted in the reader
//
// Each fills in what is right and notes what is wrong, so one run shows all mistakes. Thread
// safety: as YamlReader, they belong to one load.
#pragma once

#include <string>
#include <vector>

#include "policy/config.h"
#include "policy/routes.h"
#include "policy/yaml_reader.h"

namespace weir::policy {

void ReadListen(YamlReader& reader, const YamlNode& node, ListenConfig& listen);
void ReadStore(YamlReader& reader, const YamlNode& node, StoreConfig& store);
void ReadIdentity(YamlReader& reader, const YamlNode& node, IdentityConfig& identity);
void ReadTimeouts(YamlReader& reader, const YamlNode& node, TimeoutsConfig& timeouts);
void ReadBounds(YamlReader& reader, const YamlNode& node, BoundsConfig& bounds);
void ReadAnswers(YamlReader& reader, const YamlNode& node, AnswersConfig& answers);
void ReadCors(YamlReader& reader, const YamlNode& node, CorsConfig& cors);

// One item of `upstreams`, named "upstreams[3]" by `what`; appended when it could be read.
void ReadUpstream(YamlReader& reader, const YamlNode& node, const std::string& what,
                  std::vector<UpstreamConfig>& upstreams);

// One item of `routes`; appended when it could be read.
void ReadRoute(YamlReader& reader, const YamlNode& node, const std::string& what,
               const std::vector<UpstreamConfig>& upstreams, std::vector<Route>& routes);

// The name of a limit or an upstream: letters, digits, `_`, `.` and `-`, at most 64, no blank. It
// is shown in metrics and headers.
bool IsName(std::string_view text);

}  // namespace weir::policy
