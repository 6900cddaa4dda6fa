// GSS-API and credential caches of MIT Kerberos, which are loaded only when a next proxy needs them. libcurl has both
// libraries in the process already. The types are those of RFC 2744, appendix A, and of MIT's gssapi_ext.h; they stand
// here so that a build needs no further package.
// https://web.mit.edu/kerberos/krb5-latest/doc/appdev/gssapi.html
#ifndef HEIMDALLR_CLIBGSSAPI_H
#define HEIMDALLR_CLIBGSSAPI_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

struct heimdallr_gss_buffer {
    size_t length;
    void *value;
};
struct heimdallr_gss_oid {
    uint32_t length;
    const void *elements;
};
struct heimdallr_gss_oids {
    size_t count;
    const struct heimdallr_gss_oid *elements;
};
struct heimdallr_gss_setting {
    const char *key;
    const char *value;
};
struct heimdallr_gss_settings {
    uint32_t count;
    const struct heimdallr_gss_setting *elements;
};

#define HEIMDALLR_GSSAPI(each)                                                                                         \
    each(gss_import_name, uint32_t, (uint32_t *, const struct heimdallr_gss_buffer *, const struct heimdallr_gss_oid *,  \
                                     void **))                                                                         \
    each(gss_release_name, uint32_t, (uint32_t *, void **))                                                            \
    each(gss_acquire_cred_from, uint32_t,                                                                              \
         (uint32_t *, void *, uint32_t, const struct heimdallr_gss_oids *, int, const struct heimdallr_gss_settings *, \
          void **, void **, uint32_t *))                                                                               \
    each(gss_release_cred, uint32_t, (uint32_t *, void **))                                                            \
    each(gss_init_sec_context, uint32_t,                                                                               \
         (uint32_t *, void *, void **, void *, const struct heimdallr_gss_oid *, uint32_t, uint32_t, void *,           \
          const struct heimdallr_gss_buffer *, void **, struct heimdallr_gss_buffer *, uint32_t *, uint32_t *))        \
    each(gss_delete_sec_context, uint32_t, (uint32_t *, void **, struct heimdallr_gss_buffer *))                       \
    each(gss_release_buffer, uint32_t, (uint32_t *, struct heimdallr_gss_buffer *))                                    \
    each(gss_display_status, uint32_t, (uint32_t *, uint32_t, int, const struct heimdallr_gss_oid *, uint32_t *,       \
                                        struct heimdallr_gss_buffer *))                                                \
    each(krb5_init_context, int32_t, (void **))                                                                        \
    each(krb5_free_context, void, (void *))                                                                            \
    each(krb5_cc_resolve, int32_t, (void *, const char *, void **))                                                    \
    each(krb5_cc_destroy, int32_t, (void *, void *))

struct heimdallr_gssapi {
#define HEIMDALLR_MEMBER(name, result, parameters) result(*name) parameters;
    HEIMDALLR_GSSAPI(HEIMDALLR_MEMBER)
#undef HEIMDALLR_MEMBER
};

// Loads the library and never unloads it. Returns NULL, or the name of the missing library or function. Functions of
// libkrb5 are found through its dependent, libgssapi_krb5. dlopen(3), dlsym(3).
static inline const char *heimdallr_gssapi_load(struct heimdallr_gssapi *library) {
    void *handle = dlopen("libgssapi_krb5.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return "libgssapi_krb5.so.2";
#define HEIMDALLR_FIND(name, result, parameters)                                                                       \
    if ((library->name = (result(*) parameters)dlsym(handle, #name)) == NULL) return #name;
    HEIMDALLR_GSSAPI(HEIMDALLR_FIND)
#undef HEIMDALLR_FIND
    return NULL;
}

// SPNEGO (RFC 4178), Kerberos (RFC 4121), and the forms of the names of services and of principals.
static const struct heimdallr_gss_oid heimdallr_gss_spnego = {6, "\x2b\x06\x01\x05\x05\x02"};
static const struct heimdallr_gss_oid heimdallr_gss_krb5 = {9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"};
static const struct heimdallr_gss_oid heimdallr_gss_service = {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"};
static const struct heimdallr_gss_oid heimdallr_gss_principal = {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"};

#endif
