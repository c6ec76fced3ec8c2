#include "net/tls.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "testing/self_signed.h"

namespace weir::net {
namespace {

using weir::testing::SelfSigned;

std::string FaultOf(const TlsContext::ServerOptions& options) {
  const Result<std::unique_ptr<TlsContext>> made = TlsContext::Server(options);
  return made ? "" : made.error().message;
}

TEST(TlsContext, NamesTheFileThatIsMissing) {
  const SelfSigned identity;
  const std::string gone = identity.cert_file() + ".gone";
  const std::string reason = gone + ": No such file or directory";
  EXPECT_EQ(FaultOf({identity.cert_file(), identity.key_file(), "", {}}), "");
  EXPECT_EQ(FaultOf({gone, identity.key_file(), "", {}}), "certificate " + reason);
  EXPECT_EQ(FaultOf({identity.cert_file(), gone, "", {}}), "private key " + reason);
  EXPECT_EQ(FaultOf({identity.cert_file(), identity.key_file(), gone, {}}),
            "client CA certificates " + reason);
  const auto client = TlsContext::Client({.ca_file = gone, .cert_file = "", .key_file = ""});
  ASSERT_FALSE(client.has_value());
  EXPECT_EQ(client.error().message, "CA certificates " + reason);
}

TEST(TlsContext, SaysWhatIsWrongWithAFile) {
  const SelfSigned identity;
  const SelfSigned other;
  const std::string folder = identity.cert_file().substr(0, identity.cert_file().rfind('/'));
  EXPECT_EQ(FaultOf({folder, identity.key_file(), "", {}}),
            "certificate " + folder + ": Is a directory");
  const std::string text = folder + "/text";
  std::ofstream(text) << "no certificate\n";
  EXPECT_EQ(FaultOf({text, identity.key_file(), "", {}}),
            "certificate " + text + ": no start line");
  EXPECT_EQ(FaultOf({identity.cert_file(), other.key_file(), "", {}}),
            "private key " + other.key_file() + ": key values mismatch");
}

}  // namespace
}  // namespace weir::net
