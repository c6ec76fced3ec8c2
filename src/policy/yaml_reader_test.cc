// Strict reading: what yaml-cpp would let through, and every mistake with its place.
#include "policy/yaml_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "policy/describe.h"
#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A folder of its own for each test, removed at its end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-policy-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string Path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> LoadErrors(const std::string& path) {
  auto loaded = Policy::Load(path, EnvOf({}));
  return loaded ? std::vector<std::string>{} : Texts(loaded.error());
}

TEST(Yaml, UnknownKeysAreRefusedWithTheNameThatIsNear) {
  EXPECT_THAT(ErrorsOf("limits:\n- {name: a, rate: 1/s, burts: 5}\n"),
              ElementsAre("test.yaml:2:24: unknown key `limits[0].burts`; did you mean `burst`?"));
  EXPECT_THAT(ErrorsOf("limit: []\n"),
              ElementsAre("test.yaml:1:1: unknown key `limit`; did you mean `limits`?"));
  EXPECT_THAT(ErrorsOf("store:\n  zzz: 1\n"),
              ElementsAre("test.yaml:2:3: unknown key `store.zzz`"));
}

TEST(Yaml, DoubledKeysAreRefusedWithBothPlaces) {
  EXPECT_THAT(ErrorsOf("threads: 1\nstore:\n  max_keys: 5\n  max_keys: 6\n"),
              ElementsAre("test.yaml:4:3: `store.max_keys` is given twice: here and at "
                          "test.yaml:3:3"));
  EXPECT_THAT(ErrorsOf("threads: 1\nthreads: 2\n"),
              ElementsAre("test.yaml:2:1: `threads` is given twice: here and at test.yaml:1:1"));
  EXPECT_THAT(ErrorsOf("limits: [{name: a, rate: 1/s, match: {path: /a, path: /b}}]\n"),
              ElementsAre("test.yaml:1:49: `limit `a`: match.path` is given twice: here and at "
                          "test.yaml:1:39"));
}

TEST(Yaml, ScalarsHaveNoSurprises) {
  // YAML 1.1 reads `no` as false, `012` as ten and `1:30` as ninety.
  EXPECT_THAT(ErrorsOf("config: {watch: yes}\n"),
              ElementsAre("test.yaml:1:17: config.watch must be `true` or `false`, not `yes`"));
  EXPECT_THAT(ErrorsOf("threads: 0x10\n"),
              ElementsAre("test.yaml:1:10: threads must be a whole number from 0 to 1024, not "
                          "`0x10`"));
  EXPECT_THAT(ErrorsOf("threads: 1e2\n"), SizeIs(1));
  EXPECT_THAT(ErrorsOf("threads: -1\n"), SizeIs(1));
  EXPECT_THAT(ErrorsOf("threads:\n"),
              ElementsAre(HasSubstr("threads must be a single value, not nothing")));
  const auto policy =
      MustLoad("limits: [{name: no, rate: 1/s, match: {client: [no, 012, 'null']}}]");
  ASSERT_TRUE(policy);
  Attributes call;
  for (const char* client : {"no", "012", "null"}) {
    call.Set(kClientAttribute, client);
    EXPECT_EQ(SelectVariant(policy->limits()[0], call, Missing::kSkip), 0) << client;
  }
  call.Set(kClientAttribute, "false");
  EXPECT_EQ(SelectVariant(policy->limits()[0], call, Missing::kSkip), kDoesNotApply);
}

TEST(Yaml, SyntaxErrorsHaveTheirPlace) {
  EXPECT_THAT(ErrorsOf("threads: 1\nlimits: [\n"), ElementsAre(HasSubstr("not valid YAML: ")));
  EXPECT_THAT(ErrorsOf("threads: 1\n---\nthreads: 2\n"),
              ElementsAre(HasSubstr("a second document; one file holds one")));
  EXPECT_THAT(ErrorsOf("threads: 1\n# \xff\n"), ElementsAre("test.yaml:2:3: not UTF-8 text"));
  EXPECT_THAT(ErrorsOf("- a\n"),
              ElementsAre("test.yaml:1:1: a configuration must be a map of settings, not a list"));
  EXPECT_THAT(ErrorsOf("threads: !x 1\n"), ElementsAre(HasSubstr("tags such as `!x`")));
  EXPECT_TRUE(MustLoad(""));
  EXPECT_TRUE(MustLoad("# nothing yet\n"));
}

TEST(Yaml, AliasesStandForValuesAndCannotBlowUp) {
  const auto policy = MustLoad(
      "limits:\n"
      "- {name: a, rate: 1/s, match: &chat {path: /v1/chat/*}}\n"
      "- {name: b, rate: 5/s, match: *chat}\n");
  ASSERT_TRUE(policy);
  EXPECT_TRUE(policy->limits()[0].match == policy->limits()[1].match);

  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += below + (k < 9 ? ", " : "]\n");
  }
  EXPECT_THAT(ErrorsOf(bomb),
              ElementsAre(HasSubstr("more than 200000 values, aliases written out")));
  EXPECT_THAT(ErrorsOf("limits: &a [*a]\n"),
              ElementsAre(HasSubstr("an alias cannot stand inside what it names")));
  EXPECT_THAT(ErrorsOf("x: &x {max_keys: 5}\nstore:\n  <<: *x\n"),
              ElementsAre("test.yaml:1:1: unknown key `x`",
                          "test.yaml:3:3: merge keys (`<<`) are not read; write the settings out, "
                          "or use an alias for a whole value"));
  EXPECT_THAT(ErrorsOf(std::string(5000, '[')), SizeIs(1));
}

TEST(Yaml, AtMostTwentyMistakesAreShownInOrder) {
  std::string text = "limits:\n";
  for (int i = 0; i < 30; ++i) text += "- {name: l" + std::to_string(i) + ", rate: x}\n";
  const auto errors = ErrorsOf(text);
  ASSERT_THAT(errors, SizeIs(20));
  EXPECT_THAT(errors[0], HasSubstr("test.yaml:2:20: limit `l0`: rate `x` has no period"));
  EXPECT_THAT(errors[18], HasSubstr("test.yaml:20:21: limit `l18`: rate `x` has no period"));
  EXPECT_EQ(errors[19], "test.yaml:21:21: 11 more mistakes from here on");
}

TEST(Variables, ExpandInScalarsAfterParsing) {
  const Variables variables = {{"N", "7"}, {"EMPTY", ""}, {"EVIL", "5/s, burst: 9}"}};
  const auto policy = MustLoad(
      "threads: ${N}\n"
      "store: {max_keys: '${MISSING:-12}${EMPTY:-3}'}\n"
      "limits:\n"
      "- {name: a, rate: '${N}/${P:-min}', match: {client: ['$5', '$${N}', '${EMPTY}']}}\n",
      variables);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->config().threads, 7);
  EXPECT_EQ(policy->config().store.max_keys, 123);
  EXPECT_EQ(policy->limits()[0].variants[0].rate_text, "7/min");
  EXPECT_EQ(ToString(policy->limits()[0].match, policy->attributes()),
            "client $5, ${N} or (empty)");
  // A value cannot become structure.
  EXPECT_THAT(ErrorsOf("limits: [{name: a, rate: '${EVIL}'}]", variables),
              ElementsAre(HasSubstr("is no period")));
  EXPECT_THAT(ErrorsOf("threads: ${NONE}\n"),
              ElementsAre("test.yaml:1:10: threads: the variable NONE is not set; set it, or write "
                          "${NONE:-default}"));
  EXPECT_THAT(ErrorsOf("threads: ${N\n"),
              ElementsAre("test.yaml:1:10: threads: a variable is written ${NAME} or "
                          "${NAME:-default}; $${ stands for ${"));
}

TEST(Secrets, ComeFromTextVariableOrFileAndAreNeverShown) {
  const Folder folder;
  folder.Write("token", "from-a-file\n");
  const std::string main = folder.Write("weir.yaml",
                                        "listen:\n"
                                        "  api: {address: 0.0.0.0:0, token: {file: token}}\n"
                                        "  admin: {address: 0.0.0.0:0, token: '${T}'}\n");
  const auto loaded = Policy::Load(main, EnvOf({{"T", "from-a-variable"}}));
  ASSERT_TRUE(loaded) << Texts(loaded.error())[0];
  EXPECT_EQ((*loaded)->config().listen.api->token.Reveal(), "from-a-file");
  EXPECT_EQ((*loaded)->config().listen.admin->token.Reveal(), "from-a-variable");
  std::ostringstream shown;
  shown << (*loaded)->config().listen.api->token;
  EXPECT_EQ(shown.str(), "[redacted]");

  EXPECT_THAT(ErrorsOf("listen: {api: {address: 127.0.0.1:1, token: {file: /nowhere}}}\n"),
              ElementsAre("test.yaml:1:52: listen.api.token: cannot read /nowhere: No such file or "
                          "directory"));
  EXPECT_THAT(ErrorsOf("listen: {api: {address: 127.0.0.1:1, token: ''}}\n"),
              ElementsAre(HasSubstr("listen.api.token is empty")));
  EXPECT_THAT(
      ErrorsOf("upstreams: [{name: a, urls: ['https://u:hunter2@h/']}]\n"),
      ElementsAre("test.yaml:1:30: upstreams[0].urls: credentials do not belong into a URL; "
                  "put them into `headers` of the upstream"));
}

TEST(Yaml, ATabInTheIndentationIsNamed) {
  const std::string tab = ": not valid YAML: a tab; lines are indented with spaces only";
  EXPECT_THAT(ErrorsOf("limits:\n\t- {name: a, rate: 1/s}\n"), ElementsAre("test.yaml:2:1" + tab));
  EXPECT_THAT(ErrorsOf("limits:\n  - name: a\n\t rate: 1/s\n"), ElementsAre("test.yaml:3:1" + tab));
  EXPECT_THAT(ErrorsOf("limits:\n  -\tname: a\n    rate: 1/s\n"),
              ElementsAre("test.yaml:2:4" + tab));
  EXPECT_THAT(ErrorsOf("listen:\n \tapi: 127.0.0.1:1\n"), ElementsAre("test.yaml:2:2" + tab));
  EXPECT_THAT(ErrorsOf("a: [\n"), ElementsAre(::testing::Not(HasSubstr("tab"))));
}

TEST(Yaml, AnEmptyConfigurationIsNotSilent) {
  for (const char* text : {"", "# nothing yet\n", "{}\n", "limits: []\n"}) {
    const auto policy = MustLoad(text);
    ASSERT_TRUE(policy) << text;
    const std::string words = Describe(*policy);
    EXPECT_THAT(words, HasSubstr("doors: none; `weir serve` needs one")) << text;
    EXPECT_THAT(words, HasSubstr("there are no `limits`: every call is allowed")) << text;
  }
}

TEST(Includes, JoinListsInTheOrderOfTheNames) {
  const Folder folder;
  folder.Write("limits.d/20.yaml", "limits: [{name: c, rate: 1/s}]\n");
  folder.Write("limits.d/10.yaml", "limits: [{name: b, rate: 1/s}]\nthreads: 2\n");
  const std::string main = folder.Write(
      "weir.yaml", "limits: [{name: a, rate: 1/s}]\ninclude: [limits.d/*.yaml, none.d/*.yaml]\n");
  const auto loaded = Policy::Load(main, EnvOf({}));
  ASSERT_TRUE(loaded) << Texts(loaded.error())[0];
  std::string names;
  for (const Limit& limit : (*loaded)->limits()) names += limit.name;
  EXPECT_EQ(names, "abc");
  EXPECT_EQ((*loaded)->config().threads, 2);
  // The patterns stand behind the files: who watches them sees files that come later.
  EXPECT_THAT((*loaded)->files(),
              ElementsAre(main, folder.Path("limits.d/10.yaml"), folder.Path("limits.d/20.yaml"),
                          folder.Path("limits.d/*.yaml"), folder.Path("none.d/*.yaml")));
}

TEST(Includes, MistakesNameTheirFile) {
  const Folder folder;
  folder.Write("b.yaml", "limits: [{name: a, rate: 1/s}]\nthreads: 2\n");
  const std::string main =
      folder.Write("a.yaml", "limits: [{name: a, rate: 1/s}]\nthreads: 1\ninclude: [b.yaml]\n");
  const std::string other = folder.Path("b.yaml");
  EXPECT_THAT(
      LoadErrors(main),
      ElementsAre(other + ":1:17: limit `a` is defined twice: here and at " + main + ":1:17",
                  other + ":2:1: `threads` is given twice: here and at " + main + ":2:1"));
}

// Whatever would be waited for is refused at once, wherever a path stands and also behind a
// pattern.
TEST(Includes, OnlyFilesAreRead) {
  const Folder folder;
  const std::string pipe = folder.Path("pipe.yaml");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string why = pipe + ": it is a named pipe, which would be waited for; a file is meant";
  std::string main = folder.Write("m.yaml", "limits: []\ninclude: [pipe.yaml]\n");
  EXPECT_THAT(LoadErrors(main), ElementsAre(main + ":2:11: include: cannot read " + why));
  main = folder.Write("n.yaml", "limits: []\ninclude: ['p*.yaml']\n");
  EXPECT_THAT(LoadErrors(main), ElementsAre(main + ":2:11: include: cannot read " + why));
  main = folder.Write("o.yaml", "identity:\n  secret: {file: pipe.yaml}\n");
  EXPECT_THAT(LoadErrors(main),
              ElementsAre(main + ":2:18: identity.secret.file: cannot read " + why));
  main = folder.Write("p.txt", "identity:\n  jwt: {keys: pipe.yaml, algorithms: [RS256]}\n");
  EXPECT_THAT(LoadErrors(main), Contains(main + ":2:15: identity.jwt.keys: cannot read " + why));
  main = folder.Write("q.yaml", "include: [/dev/zero]\n");
  EXPECT_THAT(LoadErrors(main), ElementsAre(main + ":1:11: include: cannot read /dev/zero: it is a "
                                                   "device; a file is meant"));
  main = folder.Write("r.yaml", "include: [.]\n");
  EXPECT_THAT(LoadErrors(main), ElementsAre(HasSubstr("it is a directory; a file is meant")));
}

TEST(Includes, CyclesDepthAndRepetitionAreRefused) {
  const Folder folder;
  const std::string self = folder.Write("self.yaml", "include: [s*.yaml]\n");
  EXPECT_THAT(LoadErrors(self), ElementsAre(self + ":1:11: include: " + self +
                                            " includes itself, directly or through others"));
  const std::string ring = folder.Write("ring1.yaml", "include: [ring2.yaml]\n");
  folder.Write("ring2.yaml", "include: [./ring1.yaml]\n");
  EXPECT_THAT(LoadErrors(ring), ElementsAre(HasSubstr("includes itself")));
  const std::string twice = folder.Write("t.yaml", "include: [leaf.yaml, leaf.yaml]\n");
  folder.Write("leaf.yaml", "");
  EXPECT_THAT(LoadErrors(twice), ElementsAre(HasSubstr("is included twice: here and at")));
  for (int i = 0; i < 12; ++i) {
    folder.Write("deep" + std::to_string(i) + ".yaml",
                 "include: [deep" + std::to_string(i + 1) + ".yaml]\n");
  }
  EXPECT_THAT(LoadErrors(folder.Path("deep0.yaml")),
              ElementsAre(HasSubstr("include: files include each other deeper than 8")));
  EXPECT_THAT(LoadErrors(folder.Write("m.yaml", "include: [missing.yaml]\n")),
              ElementsAre(HasSubstr("m.yaml:1:11: include: cannot read ")));
  EXPECT_THAT(LoadErrors(folder.Path("absent.yaml")),
              ElementsAre(folder.Path("absent.yaml") + ": cannot read " +
                          folder.Path("absent.yaml") + ": No such file or directory"));
}

}  // namespace
}  // namespace weir::policy
