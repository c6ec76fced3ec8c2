#include <chrono>
#include <string>

#include "doors/check_api/check_api.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

using std::chrono::seconds;

struct Api {
  explicit Api(const std::string& yaml)
      : weir(yaml), service(*weir.worker, 1), client(service, weir) {}
  std::string Reserve(const std::string& cost, const std::string& reserve = "true") {
    const DoorAnswer answer = client.Post("/v1/check", R"({"attributes":{"client":"x"},"cost":)" +
                                                           cost + R"(,"reserve":)" + reserve + "}");
    const size_t at = answer.body.find(R"("reservation":")");
    EXPECT_NE(at, std::string::npos) << answer.body;
    return at == std::string::npos ? "" : answer.body.substr(at + 15, 32);
  }
  DoorAnswer Settle(const std::string& id, const std::string& actual) {
    return client.Post("/v1/settle", R"({"reservation":")" + id + R"(","actual":)" + actual + "}");
  }
  DoorAnswer Release(const std::string& id) {
    return client.Post("/v1/release", R"({"reservation":")" + id + R"("})");
  }
  DoorAnswer Check(const std::string& cost, const std::string& more = "") {
    return client.Post("/v1/check", R"({"attributes":{"client":"x"},"cost":)" + cost + more + "}");
  }
  SimulatedEngine weir;
  CheckApi service;
  DoorClient client;
};

TEST(ReservationApiTest, Case17_AReleasedUnitIsTakenOnceAgain) {
  Api api("limits: [{name: r, per: [client], rate: 10/day}]");
  for (int i = 0; i < 9; ++i) api.Check("1");
  const std::string id = api.Reserve("1");
  EXPECT_TRUE(api.Check("1").Has(R"("allowed":false,"denied_by)"));
  const DoorAnswer released = api.Release(id);
  EXPECT_EQ(released.status, 200);
  EXPECT_EQ(released.body, R"({"reservation":")" + id + R"(","charged":{"requests":0}})");
  EXPECT_EQ(api.Release(id).body, released.body);
  EXPECT_TRUE(api.Check("1").Has(R"("allowed":true,"denied_by)"));
  EXPECT_TRUE(api.Check("1").Has(R"("allowed":false,"denied_by)"));
}

TEST(ReservationApiTest, Case85_NoRefundOfWhatTimeGaveBack) {
  Api api("limits: [{name: t, per: [client], rate: 1000 tokens/min}]");
  const std::string id = api.Reserve(R"({"tokens":1000})", R"({"ttl":"10m"})");
  api.weir.Advance(seconds(60));
  EXPECT_TRUE(api.Check(R"({"tokens":1000})").Has(R"("denied_by":[])"));
  EXPECT_EQ(api.Settle(id, R"({"tokens":46})").body,
            R"({"reservation":")" + id + R"(","charged":{"tokens":46}})");
  EXPECT_TRUE(api.Check(R"({"tokens":0})", R"(,"peek":true)").Has(R"("remaining":0)"));
}

TEST(ReservationApiTest, UnknownAndExpiredAre404) {
  Api api("limits: [{name: t, per: [client], rate: 1000 tokens/day}]");
  EXPECT_EQ(api.Release("nonsense").status, 404);
  EXPECT_EQ(api.Settle(std::string(32, '0'), R"({"tokens":1})").status, 404);
  const std::string id = api.Reserve(R"({"tokens":400})");
  api.weir.Advance(seconds(60));
  const DoorAnswer late = api.Settle(id, R"({"tokens":1})");
  EXPECT_EQ(late.status, 404);
  EXPECT_TRUE(late.Has(R"("code":"not_found")"));
  EXPECT_TRUE(api.Check(R"({"tokens":0})", R"(,"peek":true)").Has(R"("remaining":600)"));
}

TEST(ReservationApiTest, ParallelSlots) {
  Api api("limits: [{name: p, per: [client], parallel: 1}]");
  const std::string id = api.Reserve("1");
  EXPECT_EQ(
      api.Check("1").body,
      R"({"allowed":false,"denied_by":["p"],"source":"memory","retry_after_ms":1000,"reservation":null,)"
      R"("limits":[{"name":"p","unit":"parallel","allowed":false,"quota":1,"remaining":0,)"
      R"("reset_after_ms":null,"retry_after_ms":1000,"shadow":false}]})");
  EXPECT_EQ(api.Release(id).status, 200);
  EXPECT_TRUE(api.Check("1").Has(R"("denied_by":[])"));
}

}  // namespace
}  // namespace weir::doors
