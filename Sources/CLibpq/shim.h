// libpq is loaded only when a store needs it, instead of linked, because it depends on Kerberos and LDAP.
// https://www.postgresql.org/docs/current/libpq.html
#ifndef HEIMDALLR_CLIBPQ_H
#define HEIMDALLR_CLIBPQ_H

#include <dlfcn.h>
#include <postgresql/libpq-fe.h>
#include <stddef.h>

#define HEIMDALLR_LIBPQ(each)                                                                                          \
    each(PQconninfoParse) each(PQconndefaults) each(PQconninfoFree) each(PQfreemem)                                    \
    each(PQconnectStart) each(PQconnectPoll) each(PQfinish) each(PQstatus) each(PQsocket) each(PQerrorMessage)         \
    each(PQsetErrorVerbosity) each(PQconnectionNeedsPassword) each(PQconnectionUsedPassword)                           \
    each(PQenterPipelineMode) each(PQpipelineSync) each(PQexitPipelineMode) each(PQpipelineStatus)                     \
    each(PQgetCancel) each(PQcancel) each(PQfreeCancel)                                                                \
    each(PQbackendPID) each(PQserverVersion) each(PQlibVersion) each(PQsetnonblocking) each(PQsetNoticeReceiver)       \
    each(PQsendQuery) each(PQsendQueryParams) each(PQflush) each(PQconsumeInput) each(PQisBusy) each(PQgetResult)      \
    each(PQresultStatus) each(PQresultErrorField) each(PQntuples) each(PQnfields) each(PQgetisnull)                    \
    each(PQgetlength) each(PQgetvalue) each(PQcmdStatus) each(PQclear) each(PQnotifies)                                     \
    each(PQtransactionStatus)

// Pointers to the used functions of libpq, with the types of libpq's header.
struct heimdallr_libpq {
#define HEIMDALLR_MEMBER(name) __typeof__(name) *name;
    HEIMDALLR_LIBPQ(HEIMDALLR_MEMBER)
#undef HEIMDALLR_MEMBER
};

// Loads libpq and never unloads it. Returns NULL, or the name of the missing library or function. dlopen(3), dlsym(3).
static inline const char *heimdallr_libpq_load(struct heimdallr_libpq *library) {
    void *handle = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return "libpq.so.5";
#define HEIMDALLR_FIND(name)                                                                                           \
    if ((library->name = (__typeof__(name) *)dlsym(handle, #name)) == NULL) return #name;
    HEIMDALLR_LIBPQ(HEIMDALLR_FIND)
#undef HEIMDALLR_FIND
    return NULL;
}

// PG_DIAG_SQLSTATE and PG_DIAG_MESSAGE_PRIMARY of PQresultErrorField.
static const int heimdallr_libpq_sqlstate = PG_DIAG_SQLSTATE;
static const int heimdallr_libpq_message = PG_DIAG_MESSAGE_PRIMARY;

#endif
