#pragma once

#include <dlfcn.h>
#include <nghttp2/nghttp2.h>

// libnghttp2's own function. The executable has one of this name for libcurl (CurlTransport/StreamEnds.swift), which notes one
// callback for the whole process. dlsym(3), RTLD_NEXT.
static inline int heimdallr_set_on_stream_close(nghttp2_session_callbacks *callbacks, nghttp2_on_stream_close_callback callback) {
    typedef void (*Setter)(nghttp2_session_callbacks *, nghttp2_on_stream_close_callback);
    Setter set = (Setter)dlsym((void *)-1l, "nghttp2_session_callbacks_set_on_stream_close_callback");
    if (!set) return NGHTTP2_ERR_INVALID_STATE;
    set(callbacks, callback);
    return 0;
}
