import CLibnghttp2

/// libnghttp2's callbacks and options, shared by all sessions. Each callback finds its session in the user data, and
/// calls one of the session's methods.
@safe struct HTTP2Callbacks: @unchecked Sendable {
    let table: OpaquePointer
    let options: OpaquePointer

    /// Made once, never freed.
    static let shared: Result<HTTP2Callbacks, HTTP2Error> = {
        do throws(HTTP2Error) { return .success(try HTTP2Callbacks()) } catch { return .failure(error) }
    }()

    /// Provider of all bodies, which reads the stream's own buffer.
    static var bodies: nghttp2_data_provider {
        unsafe nghttp2_data_provider(
            source: nghttp2_data_source(ptr: nil),
            read_callback: { _, id, _, length, flags, _, user in
                guard let flags = unsafe flags, let session = unsafe HTTP2Session.of(user) else { return Int(broken) }
                return unsafe session.provide(id, length, &flags.pointee)
            })
    }

    private init() throws(HTTP2Error) {
        var table: OpaquePointer?
        try unsafe Libnghttp2.check("nghttp2_session_callbacks_new", nghttp2_session_callbacks_new(&table))
        var options: OpaquePointer?
        try unsafe Libnghttp2.check("nghttp2_option_new", nghttp2_option_new(&options))
        guard let table = unsafe table, let options = unsafe options else { throw .failed }
        unsafe self.table = table
        unsafe self.options = options
        setOptions()
        setReceiving()
        setSending()
    }

    private func setOptions() {
        unsafe nghttp2_option_set_no_auto_window_update(options, 1)
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        // Large enough for the largest head that is accepted from an upstream.
        unsafe nghttp2_option_set_max_send_header_block_length(options, 512 << 10)
        // Allows at least 8 CONTINUATION frames. A frame whose header arrives byte by byte counts nine times.
        unsafe nghttp2_option_set_max_continuations(options, 8 * 9)
        // As good as no limit, because `FrameBudget` limits resets and many other frames.
        unsafe nghttp2_option_set_stream_reset_rate_limit(options, 100_000, 10_000)
    }

    private func setReceiving() {
        unsafe nghttp2_session_callbacks_set_on_begin_frame_callback(table) { _, header, user in
            guard let header = unsafe header, let session = unsafe HTTP2Session.of(user) else { return broken }
            unsafe session.frameBegan(header.pointee)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(table) { _, frame, user in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(user) else { return broken }
            unsafe session.headersBegan(frame.pointee.hd.stream_id)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(table) {
            _, _, name, nameCount, value, valueCount, _, user in
            guard let name = unsafe name, let value = unsafe value, let session = unsafe HTTP2Session.of(user) else {
                return broken
            }
            session.field(
                unsafe Span(_unsafeStart: name, count: nameCount), unsafe Span(_unsafeStart: value, count: valueCount))
            return session.load.isPaused ? NGHTTP2_ERR_PAUSE.rawValue : 0
        }
        // libnghttp2 would silently drop an invalid field. This resets the stream instead.
        unsafe nghttp2_session_callbacks_set_on_invalid_header_callback(table) { _, _, _, _, _, _, _, _ in
            NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { _, _, id, bytes, count, user in
            guard let session = unsafe HTTP2Session.of(user) else { return broken }
            return unsafe session.piece(id, UnsafeRawPointer(bytes), count) ? 0 : broken
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, user in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(user) else { return broken }
            unsafe session.frameCame(frame.pointee)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, id, code, user in
            guard let session = unsafe HTTP2Session.of(user) else { return broken }
            session.streamClosed(id, HTTP2Code(rawValue: code))
            return 0
        }
    }

    private func setSending() {
        unsafe nghttp2_session_callbacks_set_send_data_callback(table) { _, frame, header, count, _, user in
            guard let frame = unsafe frame, let header = unsafe header, let session = unsafe HTTP2Session.of(user)
            else { return broken }
            let start = unsafe Span(_unsafeStart: header, count: 9)
            return unsafe session.sendData(frame.pointee.hd.stream_id, start, count) ? 0 : broken
        }
        unsafe nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, user in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(user) else { return broken }
            unsafe session.frameSent(frame.pointee.hd)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(table) { _, frame, error, user in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(user) else { return broken }
            unsafe session.frameNotSent(frame.pointee.hd, error)
            return 0
        }
    }
}

/// Result that ends the session. Only a bug of ours or of libnghttp2 can cause it.
private let broken = NGHTTP2_ERR_CALLBACK_FAILURE.rawValue

extension HTTP2Session {
    fileprivate static func of(_ user: UnsafeMutableRawPointer?) -> HTTP2Session? {
        unsafe user.map { unsafe Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }
}
