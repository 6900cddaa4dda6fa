// libcurl's variadic functions as inline functions of fixed types, which Swift can call.
#ifndef HEIMDALLR_CLIBCURL_H
#define HEIMDALLR_CLIBCURL_H

#include <curl/curl.h>
#include <malloc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

// curl's headers hide these functions behind type-checking macros. This file calls the functions.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt
#undef curl_share_setopt

// Wipes libcurl's memory before freeing it, because it may have held credentials, forms or tokens. Only the front of
// large blocks is wiped: these are buffers, filled from the front. curl_global_init_mem(3), malloc_usable_size(3),
// explicit_bzero(3).
static inline void heimdallr_wipe_and_free(void *block) {
    size_t size;
    if (!block) return;
    size = malloc_usable_size(block);
    explicit_bzero(block, size < 16640 ? size : 16640);
    free(block);
}

// Reallocates a block. If the block moves, wipes the old memory.
static inline void *heimdallr_wipe_and_move(void *block, size_t size) {
    size_t had = block ? malloc_usable_size(block) : 0;
    void *moved;
    if (block && size && size <= had && size >= had / 2) return block;
    moved = malloc(size ? size : 1);
    if (!moved || !block) return moved;
    memcpy(moved, block, size < had ? size : had);
    explicit_bzero(block, had);
    free(block);
    return moved;
}

static inline CURLcode heimdallr_global_init(void) {
    return curl_global_init_mem(
        CURL_GLOBAL_DEFAULT, malloc, heimdallr_wipe_and_free, heimdallr_wipe_and_move, strdup, calloc);
}

typedef size_t (*heimdallr_data_callback)(char *, size_t, size_t, void *);
typedef curl_socket_t (*heimdallr_open_callback)(void *, curlsocktype, struct curl_sockaddr *);
typedef int (*heimdallr_close_callback)(void *, curl_socket_t);
typedef int (*heimdallr_opened_callback)(void *, curl_socket_t, curlsocktype);
typedef int (*heimdallr_prereq_callback)(void *, char *, char *, int, int);
typedef int (*heimdallr_resolver_callback)(void *, void *, void *);
typedef int (*heimdallr_socket_callback)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*heimdallr_timer_callback)(CURLM *, long, void *);
typedef int (*heimdallr_progress_callback)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

static inline CURLcode heimdallr_easy_set_progress(CURL *h, heimdallr_progress_callback f) {
    return curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, f);
}
static inline CURLcode heimdallr_easy_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_offset(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_list(CURL *h, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_data(CURL *h, CURLoption o, heimdallr_data_callback v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode heimdallr_easy_set_open(CURL *h, heimdallr_open_callback v) { return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, v); }
// Makes libcurl take the opened socket as connected. libcurl 7.88 then calls connect(2) once more, which succeeds once
// after a connect(2) that was in progress. CURLOPT_SOCKOPTFUNCTION(3).
static const int heimdallr_already_connected = CURL_SOCKOPT_ALREADY_CONNECTED;
static inline CURLcode heimdallr_easy_set_opened(CURL *h, heimdallr_opened_callback v) { return curl_easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, v); }
static inline CURLcode heimdallr_easy_set_close(CURL *h, heimdallr_close_callback v) { return curl_easy_setopt(h, CURLOPT_CLOSESOCKETFUNCTION, v); }
static inline CURLcode heimdallr_easy_set_resolver(CURL *h, heimdallr_resolver_callback v) { return curl_easy_setopt(h, CURLOPT_RESOLVER_START_FUNCTION, v); }
static inline CURLcode heimdallr_easy_set_prereq(CURL *h, heimdallr_prereq_callback v) { return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, v); }

// libcurl calls this function with each new SSL_CTX, after its own settings. By SSL_OP_IGNORE_UNEXPECTED_EOF, libcurl
// lets OpenSSL accept the end of a connection without close_notify. A cut of a body that ends with the connection would
// then go unnoticed, so this function clears the option.
static inline CURLcode heimdallr_strict_end(CURL *h, void *context, void *data) {
    (void)h;
    (void)data;
    SSL_CTX_clear_options((SSL_CTX *)context, SSL_OP_IGNORE_UNEXPECTED_EOF);
    return CURLE_OK;
}
// Number of TLS records received on one connection within the current call of libcurl, and the thread's CPU time at the
// 16th record. For one thread.
struct heimdallr_tls_silence {
    const SSL *connection;
    int records;
    long long began;
    // Whether our limit ended the connection within this call. SSL_get_shutdown(3) can't tell this end from the peer's.
    int ended;
};

// In one call, OpenSSL reads all session tickets and key updates that have arrived. This function ends a connection that
// takes over 10 ms of CPU time in one call (SSL_set_shutdown(3)).
static inline void heimdallr_tls_silence_message(int sent, int version, int type, const void *bytes, size_t size, SSL *ssl,
                                                 void *context) {
    struct heimdallr_tls_silence *silence = (struct heimdallr_tls_silence *)context;
    struct timespec time;
    long long now;
    (void)version, (void)bytes, (void)size;
    if (sent || type != SSL3_RT_HEADER) return;
    // One call of libcurl may serve many connections, each with its own handshake.
    if (silence->connection != ssl) {
        silence->connection = ssl;
        silence->records = 0;
    }
    if (++silence->records % 16 != 0) return;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return;
    now = time.tv_sec * 1000000000LL + time.tv_nsec;
    if (silence->records == 16) silence->began = now;
    if (now - silence->began <= 10000000) return;
    silence->ended = 1;
    SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

static inline CURLcode heimdallr_bounded_end(CURL *h, void *context, void *data) {
    SSL_CTX_set_msg_callback((SSL_CTX *)context, heimdallr_tls_silence_message);
    SSL_CTX_ctrl((SSL_CTX *)context, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, data);
    return heimdallr_strict_end(h, context, data);
}

// Like heimdallr_strict_end, but also makes OpenSSL wipe decrypted bytes after a read (SSL_CTX_set_options(3)).
static inline CURLcode heimdallr_wiped_context(CURL *h, void *context, void *data) {
    SSL_CTX_set_options((SSL_CTX *)context, SSL_OP_CLEANSE_PLAINTEXT);
    return heimdallr_strict_end(h, context, data);
}

static inline CURLcode heimdallr_easy_set_wiped_context(CURL *h) { return curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, heimdallr_wiped_context); }

// For connections used by curl_easy_recv and curl_easy_send. By default, OpenSSL requires that a repeated write has the
// same address (SSL_CTX_set_mode(3)), but our buffer may have moved. Read-ahead reads a record with one system call
// instead of two (SSL_CTX_set_read_ahead(3)).
static inline CURLcode heimdallr_carrier_context(CURL *h, void *context, void *data) {
    SSL_CTX_set_mode((SSL_CTX *)context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead((SSL_CTX *)context, 1);
    return heimdallr_bounded_end(h, context, data);
}

// `silence` must outlive all connections.
static inline CURLcode heimdallr_easy_set_carrier_context(CURL *h, struct heimdallr_tls_silence *silence) {
    CURLcode code = curl_easy_setopt(h, CURLOPT_SSL_CTX_DATA, silence);
    return code == CURLE_OK ? curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, heimdallr_carrier_context) : code;
}

// The first `skips` handshakes do not offer HTTP/2. `silence` must outlive all connections.
struct heimdallr_http2_offer {
    struct heimdallr_tls_silence *silence;
    int skips;
};

// Offers HTTP/2 and HTTP/1.1 (SSL_CTX_set_alpn_protos(3), which returns 0 for success).
static inline CURLcode heimdallr_http2_context(CURL *h, void *context, void *data) {
    static const unsigned char names[] = "\x02h2\x08http/1.1";
    struct heimdallr_http2_offer *offer = (struct heimdallr_http2_offer *)data;
    if (offer->skips > 0) {
        offer->skips--;
    } else if (SSL_CTX_set_alpn_protos((SSL_CTX *)context, names, sizeof names - 1) != 0) {
        return CURLE_OUT_OF_MEMORY;
    }
    return heimdallr_carrier_context(h, context, offer->silence);
}

// `offer` must outlive the dial.
static inline CURLcode heimdallr_easy_set_http2_context(CURL *h, struct heimdallr_http2_offer *offer) {
    CURLcode code = curl_easy_setopt(h, CURLOPT_SSL_CTX_DATA, offer);
    return code == CURLE_OK ? curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, heimdallr_http2_context) : code;
}

// Returns the TLS connection of a handle, or NULL.
static inline SSL *heimdallr_easy_tls(CURL *h) {
    struct curl_tlssessioninfo *info = NULL;
    if (curl_easy_getinfo(h, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info) return NULL;
    return info->backend == CURLSSLBACKEND_OPENSSL ? (SSL *)info->internals : NULL;
}

// Whether the peer has sent close_notify (SSL_get_shutdown(3)). Callers ask only after a read that ended in order,
// because the flag is also set after a fatal alert.
static inline int heimdallr_easy_saw_close_notify(CURL *h) {
    SSL *ssl = heimdallr_easy_tls(h);
    return ssl && (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

// Whether OpenSSL holds unprocessed bytes of the socket, perhaps only a part of a record (SSL_has_pending(3)).
static inline int heimdallr_easy_has_part(CURL *h) {
    SSL *ssl = heimdallr_easy_tls(h);
    return ssl && SSL_has_pending(ssl);
}

// Ends our side of a TLS connection (SSL_shutdown(3)). Writes the encrypted close_notify into `room` and returns its
// size; 0 on failure. libcurl's BIO works only within calls of libcurl, so a memory BIO replaces it meanwhile
// (SSL_set0_wbio(3)). All bytes must have been sent before, and none may follow. Bytes of the peer can still be read.
static inline size_t heimdallr_easy_close_notify(CURL *h, unsigned char *room, size_t size) {
    SSL *ssl = heimdallr_easy_tls(h);
    BIO *own, *memory;
    char *bytes = NULL;
    long count = 0;
    if (!ssl || (SSL_get_shutdown(ssl) & SSL_SENT_SHUTDOWN) || !(own = SSL_get_wbio(ssl))) return 0;
    if (!(memory = BIO_new(BIO_s_mem()))) return 0;
    if (!BIO_up_ref(own)) {
        BIO_free(memory);
        return 0;
    }
    SSL_set0_wbio(ssl, memory);
    ERR_clear_error();
    if (SSL_shutdown(ssl) >= 0) count = BIO_get_mem_data(memory, &bytes);
    ERR_clear_error();
    if (count < 0 || (size_t)count > size) count = 0;
    if (count > 0) memcpy(room, bytes, (size_t)count);
    SSL_set0_wbio(ssl, own);
    return (size_t)count;
}

// Whether the TLS handshake has selected HTTP/2 (SSL_get0_alpn_selected(3)).
static inline int heimdallr_easy_speaks_http2(CURL *h) {
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL *ssl = heimdallr_easy_tls(h);
    if (ssl) SSL_get0_alpn_selected(ssl, &name, &length);
    return length == 2 && name[0] == 'h' && name[1] == '2';
}

// Earliest end of a certificate in the verified chain of the peer, in seconds since 1970; 0 without a chain, as in a
// resumed session (SSL_get0_verified_chain(3), X509_get0_notAfter(3)).
static inline long long heimdallr_easy_certificate_end(CURL *h) {
    SSL *ssl = heimdallr_easy_tls(h);
    STACK_OF(X509) *chain = ssl && !SSL_session_reused(ssl) ? SSL_get0_verified_chain(ssl) : NULL;
    long long first = 0;
    int index;
    for (index = 0; chain && index < sk_X509_num(chain); index++) {
        struct tm parts;
        long long end;
        if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, index)), &parts) != 1) continue;
        end = (long long)timegm(&parts);
        if (first == 0 || end < first) first = end;
    }
    return first;
}

// Whether OpenSSL can load this file of trusted certificates, as libcurl does (X509_STORE_load_locations(3)).
static inline int heimdallr_loads_authorities(const char *path) {
    X509_STORE *store = X509_STORE_new();
    int loads = store && X509_STORE_load_locations(store, path, NULL) == 1;
    X509_STORE_free(store);
    ERR_clear_error();
    return loads;
}

// Facts that a server reveals in a TLS handshake, even if the handshake fails.
struct heimdallr_tls_witness {
    // PEM of the chain, the server's certificate first; NULL if none was received. Released by free(3).
    char *chain;
    size_t size;
    // Whether the server requested a client certificate.
    int asks;
    // Version, such as `TLSv1.3` (SSL_get_version(3)); NULL without a handshake message. Not to be freed.
    const char *version;
};

enum { heimdallr_witness_most = 8 };

// Verifies the chain as OpenSSL does by default, and notes the chain (SSL_CTX_set_cert_verify_callback(3)).
static inline int heimdallr_witness_verify(X509_STORE_CTX *context, void *data) {
    struct heimdallr_tls_witness *witness = (struct heimdallr_tls_witness *)data;
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(context);
    X509 *own = X509_STORE_CTX_get0_cert(context);
    BIO *memory = !witness->chain && own ? BIO_new(BIO_s_mem()) : NULL;
    if (memory) {
        char *bytes = NULL;
        long size;
        int count = sent ? sk_X509_num(sent) : 0;
        PEM_write_bio_X509(memory, own);
        for (int index = 0, written = 1; index < count && written < heimdallr_witness_most; index++) {
            X509 *one = sk_X509_value(sent, index);
            if (X509_cmp(one, own) == 0) continue;
            PEM_write_bio_X509(memory, one);
            written++;
        }
        size = BIO_get_mem_data(memory, &bytes);
        if (size > 0 && (witness->chain = (char *)malloc((size_t)size))) {
            memcpy(witness->chain, bytes, (size_t)size);
            witness->size = (size_t)size;
        }
        BIO_free(memory);
        ERR_clear_error();
    }
    return X509_verify_cert(context);
}

// Notes the version, and a CertificateRequest (RFC 8446, section 4.3.2; RFC 5246, section 7.4.4).
static inline void heimdallr_witness_message(int sent, int version, int type, const void *bytes, size_t size, SSL *ssl,
                                             void *context) {
    (void)version;
    if (!sent && type == SSL3_RT_HANDSHAKE) ((struct heimdallr_tls_witness *)context)->version = SSL_get_version(ssl);
    if (!sent && type == SSL3_RT_HANDSHAKE && size > 0 && *(const unsigned char *)bytes == SSL3_MT_CERTIFICATE_REQUEST) {
        ((struct heimdallr_tls_witness *)context)->asks = 1;
    }
}

static inline CURLcode heimdallr_witness_context(CURL *h, void *context, void *data) {
    SSL_CTX_set_cert_verify_callback((SSL_CTX *)context, heimdallr_witness_verify, data);
    SSL_CTX_set_msg_callback((SSL_CTX *)context, heimdallr_witness_message);
    SSL_CTX_ctrl((SSL_CTX *)context, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, data);
    return heimdallr_strict_end(h, context, data);
}

// `witness` must outlive the handle.
static inline CURLcode heimdallr_easy_set_witness(CURL *h, struct heimdallr_tls_witness *witness) {
    CURLcode code = curl_easy_setopt(h, CURLOPT_SSL_CTX_DATA, witness);
    return code == CURLE_OK ? curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, heimdallr_witness_context) : code;
}

static inline CURLcode heimdallr_easy_get_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode heimdallr_easy_get_offset(CURL *h, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode heimdallr_easy_get_pointer(CURL *h, CURLINFO i, void **v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode heimdallr_easy_get_socket(CURL *h, CURLINFO i, curl_socket_t *v) { return curl_easy_getinfo(h, i, v); }

static inline CURLMcode heimdallr_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode heimdallr_multi_set_pointer(CURLM *m, CURLMoption o, void *v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode heimdallr_multi_set_socket(CURLM *m, heimdallr_socket_callback v) { return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, v); }
static inline CURLMcode heimdallr_multi_set_timer(CURLM *m, heimdallr_timer_callback v) { return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, v); }

static inline CURLSHcode heimdallr_share_set_long(CURLSH *s, CURLSHoption o, long v) { return curl_share_setopt(s, o, v); }

// Result of a finished transfer, which is in a union of CURLMsg.
static inline CURLcode heimdallr_message_result(const CURLMsg *m) { return m->data.result; }
static inline struct sockaddr *heimdallr_sockaddr(struct curl_sockaddr *a) { return &a->addr; }

// Macros that Swift can't import.
static const long heimdallr_http_1_1 = CURL_HTTP_VERSION_1_1;
static const long heimdallr_http_2_tls = CURL_HTTP_VERSION_2TLS;
static const long heimdallr_http_2_known = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
static const long heimdallr_auth_digest = CURLAUTH_DIGEST;
static const long heimdallr_auth_ntlm = CURLAUTH_NTLM;
static const long heimdallr_tls_1_2 = CURL_SSLVERSION_TLSv1_2;
static const size_t heimdallr_read_abort = CURL_READFUNC_ABORT;
static const int heimdallr_socket_open_flags = SOCK_STREAM | 02000000 /* SOCK_CLOEXEC */ | 04000 /* SOCK_NONBLOCK */;
static const curl_socket_t heimdallr_socket_bad = CURL_SOCKET_BAD;
static const curl_socket_t heimdallr_socket_timeout = CURL_SOCKET_TIMEOUT;

#endif
