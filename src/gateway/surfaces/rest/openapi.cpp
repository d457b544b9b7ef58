#include <map>
#include <vector>

#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/route.h"
#include "net/http/ascii.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

std::string roles_text(const Route& route) {
  std::string text;
  for (policy::Role role : {policy::Role::admin, policy::Role::operator_, policy::Role::read_only}) {
    if (!route.roles.contains(role)) continue;
    text += text.empty() ? "[" : ",";
    json::append_string(text, policy::to_string(role));
  }
  return text.empty() ? "[]" : text + "]";
}

void append_parameters(std::string& out, const Route& route) {
  std::string_view in_path = path_parameter_name(route);
  if (in_path.empty() && route.parameters.empty()) return;
  out += R"(,"parameters":[)";
  if (!in_path.empty()) {
    out += R"({"in":"path","required":true,"schema":{"type":"string"},"name":)";
    json::append_string(out, in_path);
    out += '}';
  }
  for (const QueryParameter& parameter : route.parameters) {
    if (!out.ends_with('[')) out += ',';
    out += R"({"in":"query","schema":{"type":"string"},"name":)";
    json::append_string(out, parameter.name);
    out += R"(,"description":)";
    json::append_string(out, parameter.description);
    out += '}';
  }
  out += ']';
}

void append_operation(std::string& out, const Route& route) {
  json::append_string(out, net::http::to_lower(route.method));
  out += R"(:{"summary":)";
  json::append_string(out, route.summary);
  out += R"(,"security":)";
  out += route.is_public ? "[]" : R"([{"bearer":[]}])";
  out += R"(,"x-myrmex-roles":)" + roles_text(route);
  if (route.whole_fleet) out += R"(,"x-myrmex-whole-fleet":true)";
  append_parameters(out, route);
  if (!route.request_schema.empty()) {
    out += R"(,"requestBody":{"required":true,"content":{"application/json":{"schema":)";
    out += route.request_schema;
    out += "}}}";
  }
  out += R"(,"responses":{"200":{"description":"The answer","content":{"application/json":{}}},)"
         R"("default":{"$ref":"#/components/responses/Problem"}}})";
}

}  // namespace

std::string openapi_document() {
  std::map<std::string_view, std::vector<const Route*>> paths;
  for (const Route& route : routes())
    paths[route.path].push_back(&route);
  std::string out = R"({"openapi":"3.1.0","info":{"title":"Myrmex Hive gateway","version":)";
  json::append_string(out, HIVE_VERSION);
  out += R"(},"paths":{)";
  for (const auto& [path, operations] : paths) {
    if (!out.ends_with('{')) out += ',';
    json::append_string(out, path);
    out += ":{";
    for (const Route* operation : operations) {
      if (!out.ends_with('{')) out += ',';
      append_operation(out, *operation);
    }
    out += '}';
  }
  out += R"(},"components":{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},)"
         R"("responses":{"Problem":{"description":"A refusal or a failure in the form of RFC 9457","content":)"
         R"({"application/problem+json":{"schema":{"type":"object",)"
         R"("required":["type","title","status","code","detail","request_id"],"properties":{)"
         R"("type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},)"
         R"("code":{"type":"string"},"detail":{"type":"string"},"request_id":{"type":"string"},)"
         R"("outcome":{"type":"string"}}}}}}}}})";
  out += '\n';
  return out;
}

void get_openapi(const ContextPointer& context) {
  static const std::string document = openapi_document();
  context->respond_json(document);
}

}  // namespace hive::rest
