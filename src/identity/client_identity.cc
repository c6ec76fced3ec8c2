#include "identity/client_identity.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

namespace weir::identity {
namespace {

constexpr std::string_view kHeaderPrefix = "header.";
constexpr size_t kMaxHeaderNameBytes = 64;
constexpr size_t kMaxHeaderValueBytes = 1024;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// `lower` is in lower case.
bool EqualsIgnoringCase(std::string_view name, std::string_view lower) {
  if (name.size() != lower.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    if (Lower(name[i]) != lower[i]) return false;
  }
  return true;
}

bool IsTokenChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string_view CredentialErrorText(CredentialError error) {
  switch (error) {
    case CredentialError::kTooLong:
      return "the credential is too long";
    case CredentialError::kConflicting:
      return "the credential is given more than once";
    default:
      return "the credential is malformed";
  }
}

std::string_view MissingText(ClientSource::Kind kind) {
  switch (kind) {
    case ClientSource::Kind::kApiKey:
      return "an API key is required";
    case ClientSource::Kind::kJwtSubject:
      return "a token is required";
    default:
      return "a client identity is required";
  }
}

// Two headers with one value are two clients, so the name is part of what is hashed; no header name
// holds a ':'.
ClientId HeaderId(std::string_view name, std::string_view value, IdCache& ids) {
  std::array<char, kMaxHeaderNameBytes + 1 + kMaxHeaderValueBytes> text;
  char* end = std::ranges::copy(name, text.begin()).out;
  *end++ = ':';
  end = std::ranges::copy(value, end).out;
  return ids.Get(IdKind::kHeader, {text.data(), static_cast<size_t>(end - text.data())});
}

// Tells the tokens that one policy's resolver verified from those of another; the caches outlive
// reloads.
uint64_t NextSerial() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Result<ClientSource> ParseClientSource(std::string_view text) {
  using Kind = ClientSource::Kind;
  if (text == "api_key") return ClientSource{Kind::kApiKey, ""};
  if (text == "jwt.sub") return ClientSource{Kind::kJwtSubject, ""};
  if (text == "ip") return ClientSource{Kind::kIp, ""};
  if (text.starts_with(kHeaderPrefix)) {
    std::string name(text.substr(kHeaderPrefix.size()));
    std::ranges::transform(name, name.begin(), Lower);
    if (!name.empty() && name.size() <= kMaxHeaderNameBytes &&
        std::ranges::all_of(name, IsTokenChar)) {
      return ClientSource{Kind::kHeader, std::move(name)};
    }
  }
  return InvalidArgument("\"" + std::string(text) +
                         "\" names no client: api_key, jwt.sub, header.NAME or ip is meant");
}

void IdentityRequest::Offer(std::string_view name, std::string_view value) {
  switch (name.size()) {  // Most lines are turned away by their length.
    case 7:
      if (EqualsIgnoringCase(name, "api-key")) credentials_.api_key.Add(value);
      break;
    case 9:
      if (EqualsIgnoringCase(name, "x-api-key")) credentials_.x_api_key.Add(value);
      if (EqualsIgnoringCase(name, "forwarded")) forwarded_.AddForwarded(value);
      break;
    case 13:
      if (EqualsIgnoringCase(name, "authorization")) credentials_.authorization.Add(value);
      break;
    case 15:
      if (EqualsIgnoringCase(name, "x-forwarded-for")) forwarded_.AddForwardedFor(value);
      break;
    default:
      break;
  }
  for (size_t i = 0; i < resolver_.headers_.size(); ++i) {
    if (EqualsIgnoringCase(name, resolver_.headers_[i])) headers_[i].Add(value);
  }
}

IdentityCache::IdentityCache(const IdHasher& hasher, size_t tokens)
    : ids_(hasher),
      fast_(base::KeyHasher::Random()),
      mask_(std::bit_ceil(tokens < 1 ? size_t{1} : tokens) - 1),
      tokens_(std::make_unique<Token[]>(mask_ + 1)),
      refused_(std::make_unique<Refused[]>(kRefusedTokens)) {}

IdentityCache::Token& IdentityCache::SlotOf(const base::Key128& key) {
  return tokens_[key.lo & mask_];
}

Result<void> IdentityResolver::CheckChain(const std::vector<ClientSource>& chain) {
  for (auto source = chain.begin(); source != chain.end(); ++source) {
    if (std::find(chain.begin(), source, *source) != source) {
      return InvalidArgument("identity.client: names one source twice");
    }
    if (source->kind == ClientSource::Kind::kIp && source + 1 != chain.end()) {
      return InvalidArgument("identity.client: ip always applies, so nothing can follow it");
    }
  }
  return {};
}

// The names of the headers that the sources read.
Result<std::vector<std::string>> IdentityResolver::HeadersOf(const IdentityOptions& options) {
  std::vector<ClientSource> sources = options.client;
  if (options.require) sources.push_back(*options.require);
  std::vector<std::string> headers;
  for (const ClientSource& source : sources) {
    if (source.kind == ClientSource::Kind::kJwtSubject && !options.jwt) {
      return InvalidArgument("identity: jwt.sub needs identity.jwt");
    }
    if (source.kind != ClientSource::Kind::kHeader) continue;
    if (options.trusted_proxies.empty()) {
      return InvalidArgument(
          "identity: header." + source.header +
          " needs identity.trusted_proxies, which alone may name clients by headers");
    }
    if (std::ranges::find(headers, source.header) == headers.end())
      headers.push_back(source.header);
  }
  if (headers.size() > IdentityRequest::kMaxHeaderSources) {
    return InvalidArgument("identity: at most 4 headers can name clients");
  }
  return headers;
}

Result<std::unique_ptr<IdentityResolver>> IdentityResolver::Create(IdentityOptions options) {
  if (options.ipv6_prefix < 1 || options.ipv6_prefix > 128) {
    return InvalidArgument("identity.ipv6_prefix: must be 1 to 128");
  }
  if (const Result<void> chain = CheckChain(options.client); !chain)
    return std::unexpected(chain.error());
  if (options.client.empty() || options.client.back().kind != ClientSource::Kind::kIp) {
    options.client.push_back({ClientSource::Kind::kIp, ""});
  }
  Result<std::vector<std::string>> headers = HeadersOf(options);
  if (!headers) return std::unexpected(headers.error());

  std::optional<JwtVerifier> verifier;
  if (options.jwt) {
    Result<JwtVerifier> made = JwtVerifier::Create(*options.jwt);
    if (!made) return std::unexpected(made.error());
    verifier = *std::move(made);
    options.jwt->keys.clear();  // Not needed any more, and nothing to keep in memory or show.
  }
  return std::unique_ptr<IdentityResolver>(
      new IdentityResolver(std::move(options), std::move(verifier), *std::move(headers)));
}

IdentityResolver::IdentityResolver(IdentityOptions options, std::optional<JwtVerifier> verifier,
                                   std::vector<std::string> headers)
    : options_(std::move(options)),
      verifier_(std::move(verifier)),
      headers_(std::move(headers)),
      serial_(NextSerial()) {}

IdentityResolver::Verified IdentityResolver::VerifyToken(std::string_view token,
                                                         IdentityCache& cache,
                                                         int64_t wall_ns) const {
  const base::Key128 key = cache.fast_.Begin(token).Finish();
  IdentityCache::Token& slot = cache.SlotOf(key);
  const int64_t wall_s = wall_ns / 1'000'000'000;
  if (slot.key == key && slot.resolver == serial_ && wall_s < slot.expires_s) return {slot.id, {}};
  IdentityCache::Refused& refused = cache.RefusedSlotOf(key);
  if (refused.key == key && refused.resolver == serial_ && wall_s >= refused.since_s)
    return {{}, refused.error};
  ++cache.token_misses_;
  const std::expected<JwtClaims, JwtError> claims = verifier_->Verify(token, wall_ns);
  if (!claims) {
    // Time mends one fault only; a clock that is set back, another: hence `since`.
    if (claims.error() != JwtError::kNotYetValid) {
      refused = {key, serial_, wall_s, claims.error()};
    }
    return {{}, claims.error()};
  }
  const ClientId id = cache.ids_.Get(IdKind::kJwt, claims->subject);
  slot = {key, serial_, claims->expires_s, id};
  return {id, {}};
}

// What a request proved, by kind of source. Views point into the request.
struct IdentityResolver::Found {
  std::string_view api_key;
  ClientId token;
  std::array<std::string_view, IdentityRequest::kMaxHeaderSources> headers;
  std::string_view ip;
};

std::string_view IdentityResolver::Gather(const IdentityRequest& request, IdentityCache& cache,
                                          int64_t wall_ns, Found& found) const {
  const Credentials credentials = ReadCredentials(request.credentials_, verifier_.has_value());
  if (credentials.error != CredentialError::kNone) return CredentialErrorText(credentials.error);
  found.api_key = credentials.api_key;
  if (!credentials.jwt.empty()) {
    const Verified token = VerifyToken(credentials.jwt, cache, wall_ns);
    if (token.error) return JwtErrorText(*token.error);
    found.token = token.id;
  }
  if (headers_.empty() || !options_.trusted_proxies.Contains(request.peer_)) return {};
  for (size_t i = 0; i < headers_.size(); ++i) {
    const SingleLine& line = request.headers_[i];
    if (line.conflicting) return "the identity header is given more than once";
    if (line.value.size() > kMaxHeaderValueBytes) return "the identity header is too long";
    found.headers[i] = line.value;
  }
  return {};
}

ClientId IdentityResolver::IdOf(const ClientSource& source, const Found& found,
                                IdentityCache& cache) const {
  switch (source.kind) {
    case ClientSource::Kind::kApiKey:
      return found.api_key.empty() ? ClientId() : cache.ids_.Get(IdKind::kKey, found.api_key);
    case ClientSource::Kind::kJwtSubject:
      return found.token;
    case ClientSource::Kind::kHeader: {
      const auto index =
          static_cast<size_t>(std::ranges::find(headers_, source.header) - headers_.begin());
      const std::string_view value = found.headers[index];
      return value.empty() ? ClientId() : HeaderId(source.header, value, cache.ids_);
    }
    case ClientSource::Kind::kIp:
      return cache.ids_.Get(IdKind::kIp, found.ip);
  }
  return {};
}

Identity IdentityResolver::Resolve(const IdentityRequest& request, IdentityCache& cache,
                                   int64_t wall_ns) const {
  Identity who;
  who.address = ClientAddress(request.peer_, options_.trusted_proxies, request.forwarded_);
  who.ip = who.address.Grouped(options_.ipv6_prefix);

  Found found;
  found.ip = who.ip.view();
  who.reason = Gather(request, cache, wall_ns, found);
  if (!who.reason.empty()) {
    who.outcome = IdentityOutcome::kInvalid;
  } else if (options_.require && IdOf(*options_.require, found, cache).empty()) {
    who.outcome = IdentityOutcome::kMissing;
    who.reason = MissingText(options_.require->kind);
  }
  if (who.outcome != IdentityOutcome::kOk) {
    who.client = cache.ids_.Get(IdKind::kIp, found.ip);
    return who;
  }
  for (const ClientSource& source : options_.client) {
    who.client = IdOf(source, found, cache);
    who.source = source.kind;
    if (!who.client.empty()) break;
  }
  return who;
}

}  // namespace weir::identity
