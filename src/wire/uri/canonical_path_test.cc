#include "wire/uri/canonical_path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace weir::uri {
namespace {

std::string Canonical(std::string_view path) {
  std::string scratch;
  const CanonicalOutcome outcome = CanonicalPath(path, scratch);
  return outcome.ok() ? std::string(outcome.path) : "error: " + std::string(outcome.error);
}

TEST(CanonicalPath, HasOneSpelling) {
  EXPECT_EQ(Canonical("/v1/chat"), "/v1/chat");
  EXPECT_EQ(Canonical("/v1//chat/%7euser/../x"), "/v1/chat/x");
  EXPECT_EQ(Canonical("/%76%31/ch%61t"), "/v1/chat");
  EXPECT_EQ(Canonical("/a%2fb%3a"), "/a%2Fb%3A");
  EXPECT_EQ(Canonical("/a%2Fb"), "/a%2Fb");
  EXPECT_EQ(Canonical("/{id}|\"<>\\^`[]"), "/%7Bid%7D%7C%22%3C%3E%5C%5E%60%5B%5D");
  EXPECT_EQ(Canonical("/a:b@c!$&'()*+,;="), "/a:b@c!$&'()*+,;=");
  EXPECT_EQ(Canonical("/a%252e"), "/a%252e");  // Decoded once only.
  EXPECT_EQ(Canonical("/%25%32%65"), "/%252e");
}

TEST(CanonicalPath, ResolvesDotSegments) {
  EXPECT_EQ(Canonical("/"), "/");
  EXPECT_EQ(Canonical("//"), "/");
  EXPECT_EQ(Canonical("/."), "/");
  EXPECT_EQ(Canonical("/./"), "/");
  EXPECT_EQ(Canonical("/a/."), "/a/");
  EXPECT_EQ(Canonical("/a/.."), "/");
  EXPECT_EQ(Canonical("/a/b/.."), "/a/");
  EXPECT_EQ(Canonical("/a/b/../"), "/a/");
  EXPECT_EQ(Canonical("/a/../b/./c//d/"), "/b/c/d/");
  EXPECT_EQ(Canonical("/a//../b"), "/b");
  EXPECT_EQ(Canonical("/a/%2e%2E/b"), "/b");
  EXPECT_EQ(Canonical("/a/.%2e/b"), "/b");
  EXPECT_EQ(Canonical("/..a/...//.b"), "/..a/.../.b");
  EXPECT_EQ(Canonical("/a/..%2fb"), "/a/..%2Fb");
}

TEST(CanonicalPath, RefusesWhatCannotBeRight) {
  EXPECT_EQ(Canonical("/.."), "error: a path that leads above the root");
  EXPECT_EQ(Canonical("/a/../../b"), "error: a path that leads above the root");
  EXPECT_EQ(Canonical("/%2e%2e/a"), "error: a path that leads above the root");
  EXPECT_EQ(Canonical("/%zz"), "error: a bad escape in the path");
  EXPECT_EQ(Canonical("/%"), "error: a bad escape in the path");
  EXPECT_EQ(Canonical("/%4"), "error: a bad escape in the path");
  EXPECT_EQ(Canonical("/a%00"), "error: a NUL in the path");
  EXPECT_EQ(Canonical(""), "error: a path that does not start with a slash");
  EXPECT_EQ(Canonical("a"), "error: a path that does not start with a slash");
  for (const char* path : {"/a b", "/a\tb", "/a\r\n", "/\x7f", "/a?b", "/a#b", "/\xC3\xA4"}) {
    EXPECT_EQ(Canonical(path), "error: a character that no path can hold") << path;
  }
}

TEST(CanonicalPath, DoesNotCopyWhatIsCanonical) {
  const std::string path = "/v1/chat/completions/%2F.x/..y";
  std::string scratch;
  EXPECT_EQ(CanonicalPath(path, scratch).path.data(), path.data());
  EXPECT_EQ(scratch.capacity(), std::string().capacity());
}

TEST(CanonicalPath, IgnoresOneTrailingSlash) {
  EXPECT_EQ(WithoutTrailingSlash("/a/"), "/a");
  EXPECT_EQ(WithoutTrailingSlash("/a"), "/a");
  EXPECT_EQ(WithoutTrailingSlash("/"), "/");
}

TEST(CanonicalPath, IsItsOwnCanonicalForm) {
  const bool ok = rc::check("canonical twice is canonical once", [] {
    std::string path = "/";
    for (const char* part : *rc::gen::container<std::vector<const char*>>(
             rc::gen::element("/", "..", ".", "a", "%2e", "%2F", "%41", "{", "%c3%A4", "~"))) {
      path += part;
    }
    std::string first, second;
    const CanonicalOutcome once = CanonicalPath(path, first);
    if (!once.ok()) return;
    const CanonicalOutcome twice = CanonicalPath(once.path, second);
    RC_ASSERT(twice.ok());
    RC_ASSERT(twice.path.data() == once.path.data());
    RC_ASSERT(once.path.find("//") == std::string_view::npos);
    RC_ASSERT((std::string(once.path) + "/").find("/../") == std::string::npos);
    RC_ASSERT((std::string(once.path) + "/").find("/./") == std::string::npos);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace weir::uri
