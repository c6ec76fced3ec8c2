#include "doors/admin/admin.h"

#include <string>

#include "decide/descriptors.h"
#include "doors/admin/reload_errors.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

constexpr const char* kPolicy =
    "limits: [{name: a, per: [client], rate: 10/hour}, {name: b, rate: 100/hour}]";

struct Operator {
  explicit Operator(ReloadFunction reload = [] { return policy::ReloadPlan{}; })
      : Operator(kPolicy, std::move(reload)) {}
  explicit Operator(
      const char* yaml, ReloadFunction reload = [] { return policy::ReloadPlan{}; })
      : weir(yaml), service(*weir.worker, std::move(reload)), client(service, weir) {}
  SimulatedEngine weir;
  Admin service;
  DoorClient client;
};

TEST(AdminTest, ReloadSaysWhatChanged) {
  Operator op([] { return policy::ReloadPlan{.added = {"new"}, .rerated = {"a"}}; });
  const DoorAnswer answer = op.client.Post("/admin/reload", "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(
      answer.body,
      R"({"reloaded":true,"added":["new"],"removed":[],"rerated":["a"],"restarted":[],"warnings":[]})");
}

TEST(AdminTest, ReloadErrorsNameTheirPlaces) {
  Operator op([]() -> Result<policy::ReloadPlan> {
    return InvalidArgument("weir.yaml:12:5: unknown key\nd:1:x.yaml:3:4: twice");
  });
  const DoorAnswer answer = op.client.Post("/admin/reload", "");
  EXPECT_EQ(answer.status, 422);
  EXPECT_TRUE(
      answer.Has(R"("errors":[{"file":"weir.yaml","line":12,"column":5,"message":"unknown key"},)"
                 R"({"file":"d:1:x.yaml","line":3,"column":4,"message":"twice"}])"))
      << answer.body;
  Operator restart([]() -> Result<policy::ReloadPlan> {
    return MakeError(ErrorCode::kFailedPrecondition, "restart");
  });
  EXPECT_EQ(restart.client.Post("/admin/reload", "").status, 409);
}

TEST(AdminTest, ResetSaysWhichLimitMayBeMeant) {
  Operator op("limits: [{name: per-client, rate: 10/hour}, {name: chat, rate: 1/hour}]");
  const DoorAnswer answer = op.client.Post("/admin/reset", R"({"limit":"per-cleint"})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_TRUE(
      answer.Has(R"("message":"limit: there is none of that name; did you mean `per-client`?")"))
      << answer.body;
}

TEST(AdminTest, ResetStateAndTop) {
  Operator op;
  op.weir.Allowed(12, {{"client", "acme co"}});
  const DoorAnswer state = op.client.Get("/admin/state?client=acme%20co");
  EXPECT_EQ(state.status, 200);
  EXPECT_TRUE(state.body.starts_with(
      R"({"limits":[{"name":"a","unit":"requests","rate":"10/hour","shadow":false,)"
      R"("unlimited":false,"quota":10,"remaining":0,"reset_after_ms":3600000},)"))
      << state.body;
  EXPECT_TRUE(state.Has(R"("name":"b")"));
  const DoorAnswer top = op.client.Get("/admin/top?by=denied&n=5");
  EXPECT_EQ(top.body, R"({"by":"denied","clients":[{"client":"acme co","count":2,"error":0}]})");
  EXPECT_EQ(op.client.Get("/admin/top?n=0").status, 400);
  EXPECT_EQ(
      op.client.Post("/admin/reset", R"({"limit":"a","attributes":{"client":"acme co"}})").status,
      200);
  EXPECT_TRUE(op.client.Get("/admin/state?client=acme+co").Has(R"("remaining":10)"));
  EXPECT_EQ(op.client.Post("/admin/reset", R"({"limit":"zzz","attributes":{}})").status, 404);
  EXPECT_EQ(op.client.Post("/admin/reset", R"({"limit":"a","attributes":{}})").status, 400);
  EXPECT_EQ(op.client.Get("/admin/state?nope=1").status, 400);
  const DoorAnswer twice = op.client.Get("/admin/state?client=acme&client=other");
  EXPECT_EQ(twice.status, 400);
  EXPECT_TRUE(twice.Has(R"("message":"client: comes twice")")) << twice.body;
  EXPECT_EQ(op.client.Get("/admin/state?client=acme&cl%69ent=acme").status, 400);
  EXPECT_EQ(op.client.Get("/admin/top?n=1&n=2").status, 400);
  EXPECT_EQ(op.client.Get("/admin/reset").status, 405);
  EXPECT_EQ(op.client.Get("/admin").status, 404);
}

TEST(AdminTest, DescriptorsAreLookedAtAndReset) {
  Operator op(R"(
limits:
  - {name: users, domain: d, descriptor: [{key: db, value: users}], rate: 10/hour}
  - {name: free, domain: d, descriptor: [{key: free}], rate: unlimited}
  - {name: a, per: [client], rate: 10/hour}
)");
  const decide::DescriptorEntry entries[] = {{"db", "users"}};
  const decide::Descriptor descriptors[] = {{.entries = entries, .hits = 3}};
  ASSERT_TRUE(op.weir.worker->DecideDescriptors({"d", descriptors}, {}, op.weir.now()));
  EXPECT_TRUE(
      op.client.Get("/admin/state?domain=d&db=users")
          .Has(R"("limits":[{"name":"users","unit":"requests","rate":"10/hour","shadow":false,)"
               R"("unlimited":false,"quota":10,"remaining":7,)"));
  EXPECT_TRUE(op.client.Get("/admin/state?domain=d&free=1").Has(R"("unlimited":true)"));
  EXPECT_EQ(op.client.Get("/admin/state?domain=d&db=x").body, R"({"limits":[]})");
  const auto reset = [&](const std::string& body) { return op.client.Post("/admin/reset", body); };
  EXPECT_EQ(reset(R"({"limit":"users","descriptor":[{"key":"db","value":"users"}]})").body,
            R"({"reset":"users"})");
  EXPECT_TRUE(op.client.Get("/admin/state?domain=d&db=users").Has(R"("remaining":10,)"));
  EXPECT_TRUE(reset(R"({"limit":"users","descriptor":[{"key":"db","value":"x"}]})")
                  .Has("descriptor: the limit binds to db=users"));
  EXPECT_TRUE(reset(R"({"limit":"users","attributes":{"client":"x"}})")
                  .Has("descriptor: missing; the limit binds to descriptors"));
  EXPECT_TRUE(reset(R"({"limit":"a","descriptor":[{"key":"db"}]})")
                  .Has("descriptor: the limit is kept by attributes; name these"));
  EXPECT_TRUE(
      reset(R"({"limit":"users","descriptor":[{"value":"x"}]})").Has("descriptor.key: is missing"));
  EXPECT_TRUE(reset(R"({"limit":"a","descriptor":[],"attributes":{}})")
                  .Has("descriptor: cannot stand beside attributes"));
  EXPECT_EQ(reset(R"({"limit":"a","descriptor":{}})").status, 400);
}

TEST(ReloadErrorsTest, LinesWithoutAPlaceAreKeptWhole) {
  const std::vector<ReloadError> errors = SplitReloadErrors("cannot read: x\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].message, "cannot read: x");
  EXPECT_EQ(errors[0].line, 0);
}

}  // namespace
}  // namespace weir::doors
