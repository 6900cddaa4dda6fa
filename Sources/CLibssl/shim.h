// libssl for a server: macros that Swift can't import, and settings that all contexts share.
#ifndef HEIMDALLR_CLIBSSL_H
#define HEIMDALLR_CLIBSSL_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/tls1.h>
#include <openssl/x509v3.h>

// Selects http/1.1, otherwise h2, otherwise the alert no_application_protocol. SSL_CTX_set_alpn_select_cb(3).
static inline int heimdallr_choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *size,
                                            const unsigned char *offered, unsigned int count, void *context) {
    static const unsigned char served[] = "\x08http/1.1\x02h2";
    (void)ssl, (void)context;
    if (SSL_select_next_proto((unsigned char **)chosen, size, served, sizeof served - 1, offered, count) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    return SSL_TLSEXT_ERR_OK;
}

// Makes a context with the settings of all connections; NULL on failure. TLS 1.3, and TLS 1.2 with forward secrecy and
// AEAD only. Clients keep their sessions in tickets. Early data is off by libssl's default. SSL_CTX_set_options(3),
// SSL_CTX_set_mode(3), SSL_CTX_set_session_cache_mode(3), SSL_CTX_set_cipher_list(3).
static inline SSL_CTX *heimdallr_server_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context) return NULL;
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(context, heimdallr_choose_protocol, NULL);
    if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1)
        return context;
    SSL_CTX_free(context);
    return NULL;
}

// SSL_CTX_add1_chain_cert(3).
static inline int heimdallr_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// The Swift object of a connection, for the callbacks of libssl. SSL_set_app_data(3).
static inline int heimdallr_set_owner(SSL *ssl, void *owner) { return SSL_set_app_data(ssl, owner); }
static inline void *heimdallr_owner(const SSL *ssl) { return SSL_get_app_data(ssl); }

// Makes a connection neither take nor send tickets. TLS 1.3 would send tickets of another kind if only the option were
// set. SSL_set_options(3), SSL_set_num_tickets(3).
static inline int heimdallr_forgo_tickets(SSL *ssl) {
    SSL_set_options(ssl, SSL_OP_NO_TICKET);
    return SSL_set_num_tickets(ssl, 0);
}

// Returns a certificate of the peer's verified chain, the peer's own first; NULL after the last one.
// SSL_get0_verified_chain(3).
static inline const X509 *heimdallr_verified_certificate(const SSL *ssl, int index) {
    const STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    return index < sk_X509_num(chain) ? sk_X509_value(chain, index) : NULL;
}

// BIO_set_retry_read(3).
static inline void heimdallr_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline void heimdallr_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

// Swift can't import this macro, which consists of other macros.
static const unsigned long heimdallr_name_format_rfc2253 = XN_FLAG_RFC2253;

// Reads the alternative name at `index`. Returns its kind (GEN_DNS, GEN_URI, GEN_EMAIL) and its text, 0 for another
// kind, or -1 after the last name. GENERAL_NAME_get0_value(3).
static inline int heimdallr_alternative_name(const GENERAL_NAMES *names, int index, const unsigned char **text, int *count) {
    const GENERAL_NAME *name;
    int kind;
    if (index >= sk_GENERAL_NAME_num(names)) return -1;
    name = sk_GENERAL_NAME_value(names, index);
    ASN1_STRING *value = (ASN1_STRING *)GENERAL_NAME_get0_value(name, &kind);
    if (kind != GEN_DNS && kind != GEN_URI && kind != GEN_EMAIL) return 0;
    *text = ASN1_STRING_get0_data(value);
    *count = ASN1_STRING_length(value);
    return kind;
}

#endif
