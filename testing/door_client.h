// Asks an HttpService without a socket: parses a request's text, calls Answer, takes the answer's
// text apart.
//
// Thread safety: none.
//
//   DoorClient client(api, weir);
//   DoorAnswer answer = client.Post("/v1/check", R"({"attributes":{"client":"x"}})");
//   EXPECT_EQ(answer.status, 200);
#pragma once

#include <netinet/in.h>

#include <string>
#include <string_view>

#include "gtest/gtest.h"
#include "net/http_service.h"
#include "testing/simulated_engine.h"
#include "wire/buffer.h"
#include "wire/http1/request_head.h"
#include "wire/http1/response_writer.h"

namespace weir {

struct DoorAnswer {
  int status = 0;
  std::string head;  // With the status line.
  std::string body;

  // The value of the first field of that name as written, or "".
  std::string Field(std::string_view name) const {
    const std::string line = "\r\n" + std::string(name) + ": ";
    const size_t at = head.find(line);
    if (at == std::string::npos) return "";
    const size_t begin = at + line.size();
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  bool Has(std::string_view text) const { return body.find(text) != std::string::npos; }
};

class DoorClient {
 public:
  DoorClient(net::HttpService& service, SimulatedEngine& weir) : service_(service), weir_(weir) {}

  void SetPeer(const std::string& address) { peer_ = net::Endpoint::Parse(address).value(); }

  DoorAnswer Get(const std::string& target, const std::string& fields = "") {
    return Ask("GET", target, fields, "");
  }
  DoorAnswer Post(const std::string& target, const std::string& body,
                  const std::string& fields = "") {
    return Ask("POST", target, fields, body);
  }
  // `fields`: whole lines, each with its CRLF.
  DoorAnswer Ask(const std::string& method, const std::string& target, const std::string& fields,
                 const std::string& body) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: weir.test\r\n" + fields;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    text += "\r\n";
    http1::RequestHead head;
    const http1::ParseOutcome outcome = http1::ParseRequestHead(text, {}, head);
    EXPECT_TRUE(outcome.complete()) << outcome.reason << "\n" << text;
    wire::Buffer out;
    http1::ResponseWriter writer(out);
    const int64_t wall_ns = weir_.clock.RealtimeNs();
    service_.Answer({.head = head,
                     .body = body,
                     .peer = peer_,
                     .now_ns = weir_.clock.MonotonicNs(),
                     .wall_ns = wall_ns,
                     .date = net::HttpDateOf(wall_ns)},
                    writer);
    return Split(std::string(out.View()), method == "HEAD");
  }

 private:
  static DoorAnswer Split(const std::string& text, bool head_only) {
    DoorAnswer answer;
    const size_t end = text.find("\r\n\r\n");
    EXPECT_NE(end, std::string::npos) << text;
    answer.head = text.substr(0, end + 2);
    answer.body = text.substr(end + 4);
    answer.status = std::stoi(text.substr(9, 3));
    if (head_only) {
      EXPECT_EQ(answer.body, "");
    } else {
      EXPECT_EQ(answer.Field("Content-Length"), std::to_string(answer.body.size())) << text;
    }
    return answer;
  }

  net::HttpService& service_;
  SimulatedEngine& weir_;
  net::Endpoint peer_ = net::Endpoint::Parse("127.0.0.1:40000").value();
};

}  // namespace weir
