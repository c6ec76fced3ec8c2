// A certificate for localhost and 127.0.0.1 and its key, made afresh in a folder of its own, for
// tests of TLS.
//
//   testing::SelfSigned identity;                  // identity.cert_file(), identity.key_file();
//   removed at the end
//
// Thread safety: plain value after construction.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace weir::testing {

class SelfSigned {
 public:
  SelfSigned() {
    char name[] = "/tmp/weir-tls-XXXXXX";
    folder_ = mkdtemp(name);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_EXTENSION* names =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    X509_add_ext(certificate, names, -1);
    X509_EXTENSION_free(names);
    X509_sign(certificate, key, EVP_sha256());
    std::FILE* cert_out = std::fopen(cert_file().c_str(), "w");
    PEM_write_X509(cert_out, certificate);
    std::fclose(cert_out);
    std::FILE* key_out = std::fopen(key_file().c_str(), "w");
    PEM_write_PrivateKey(key_out, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(key_out);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~SelfSigned() { std::filesystem::remove_all(folder_); }
  SelfSigned(const SelfSigned&) = delete;

  std::string cert_file() const { return folder_ + "/cert.pem"; }
  std::string key_file() const { return folder_ + "/key.pem"; }

 private:
  std::string folder_;
};

}  // namespace weir::testing
