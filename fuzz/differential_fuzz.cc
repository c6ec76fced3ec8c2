// Our request head parser against two others, Boost.Beast's and http-parser's: what we accept both
// accept and frame alike, and what Beast accepts and we refuse is a shape that we mean to refuse.
//
// Differences that are meant, and why:
// - extension methods: http-parser knows a fixed list only;
// - targets in absolute and authority form: http-parser refuses hosts that RFC 3986 allows, such as
//   "a!b", so only origin-form targets are held against it;
// - Connection fields that are no clean list of tokens: each parser has its own notion of them, and
//   none of ours frames by them, so keep-alive is compared only for clean ones;
// - Proxy-Connection: Beast judges and obeys this field, which no standard knows; we never forward
// it
//   and give it no meaning, so heads with one are not compared;
// - an empty line before the request: skipped by us (RFC 9112, 2.2), so the peers get what follows.
#include <http_parser.h>

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <iterator>

#include "fuzz/check.h"
#include "wire/http1/request_head.h"

using namespace weir;

namespace {

// What we refuse though Beast lets it through. A reason that is not here must be one that Beast
// refuses as well.
constexpr std::string_view kRefusedShapes[] = {
    "more than one Content-Length",  // "1" twice: the value may change between hops.
    "a bad Content-Length",          // "1, 1".
    "both Transfer-Encoding and Content-Length",
    "more than one Transfer-Encoding",
    "a Transfer-Encoding other than chunked",  // "xchunked", "gzip, chunked".
    "Transfer-Encoding in HTTP/1.0",
    "more than one Host",
    "no Host",
    "a bad Host",
    "a Host at odds with the target",
    "a folded field line",
    "white space before the first field",
    "an Expect other than 100-continue",
    "a target that is neither a path nor an http URI",
    "a target of * with a method other than OPTIONS",
    "a target with a bad authority",
    "a CONNECT target that is not host:port",
    "a character that no target can hold",  // '#', and bytes beyond ASCII.
    "an HTTP version other than 1.0 and 1.1",
    "a target that is too long",
    "a method that is too long",
    "too many fields",
};

struct Peer {
  bool complete = false;
  bool chunked = false;
  bool has_length = false;
  uint64_t length = 0;
  int minor_version = 0;
  bool keep_alive = false;
};

Peer ParseWithBeast(std::string_view text) {
  namespace http = boost::beast::http;
  http::request_parser<http::empty_body> parser;
  parser.header_limit(1 << 20);
  parser.body_limit(boost::none);
  parser.eager(false);
  boost::beast::error_code ec;
  parser.put(boost::asio::const_buffer(text.data(), text.size()), ec);
  Peer peer;
  peer.complete = !ec && parser.is_header_done();
  if (!peer.complete) return peer;
  peer.chunked = parser.chunked();
  peer.has_length = parser.content_length().has_value();
  peer.length = parser.content_length().value_or(0);
  peer.minor_version = static_cast<int>(parser.get().version() % 10);
  peer.keep_alive = parser.keep_alive();
  return peer;
}

Peer ParseWithHttpParser(std::string_view text) {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  Peer peer;
  settings.on_headers_complete = [](http_parser* parser) {
    Peer& to = *static_cast<Peer*>(parser->data);
    to.complete = true;
    to.chunked = (parser->flags & F_CHUNKED) != 0;
    to.has_length = (parser->flags & F_CONTENTLENGTH) != 0;
    to.length = to.has_length ? parser->content_length : 0;
    to.minor_version = parser->http_minor;
    to.keep_alive = http_should_keep_alive(parser) != 0;
    return 0;
  };
  http_parser parser;
  http_parser_init(&parser, HTTP_REQUEST);
  parser.data = &peer;
  http_parser_execute(&parser, &settings, text.data(), text.size());
  return peer;
}

bool CleanConnection(const http1::RequestHead& head) {
  int fields = 0;
  for (const http1::HeaderField& field : head.headers) {
    if (field.id != http1::FieldId::kConnection) continue;
    if (++fields > 1 || !http1::IsToken(field.value)) return false;
  }
  return true;
}

void CheckAgrees(const Peer& peer, const http1::RequestHead& head) {
  fuzz::Check(peer.complete);
  fuzz::Check(peer.chunked == (head.body == http1::BodyKind::kChunked));
  fuzz::Check(peer.has_length == head.has_content_length);
  fuzz::Check(peer.length == static_cast<uint64_t>(head.content_length));
  fuzz::Check(peer.minor_version == head.minor_version);
  if (CleanConnection(head)) fuzz::Check(peer.keep_alive == head.keep_alive);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  http1::RequestHead head;
  const http1::ParseOutcome outcome =
      http1::ParseRequestHead(input, http1::HeadLimits(), head, nullptr);
  if (outcome.need_more()) return 0;
  if (outcome.error()) {
    if (ParseWithBeast(input).complete) {
      fuzz::Check(std::find(std::begin(kRefusedShapes), std::end(kRefusedShapes),
                            std::string_view(outcome.reason)) != std::end(kRefusedShapes));
    }
    return 0;
  }
  if (head.headers.Find(http1::FieldId::kProxyConnection) != nullptr) return 0;
  std::string_view text = input.substr(0, outcome.consumed);
  if (text.starts_with("\r\n")) text.remove_prefix(2);
  CheckAgrees(ParseWithBeast(text), head);
  if (head.target_form == http1::TargetForm::kOrigin && head.method_id != http1::Method::kOther) {
    CheckAgrees(ParseWithHttpParser(text), head);
  }
  return 0;
}
