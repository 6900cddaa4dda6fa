import Glibc
import Synchronization

// libcurl's HTTP/2 engine takes a stream that ends with error code 0 for a whole answer. RST_STREAM(NO_ERROR) has that
// code, too, and a frame of the wrong size or padding ends the session without any. A body without Content-Length would
// then be cut unseen. So libcurl's call that sets its callback at nghttp2 arrives here first, because a symbol of the
// executable comes before those of shared libraries (ld.so(8)). docs/decisions/0034-http2-ends.md.

private typealias Callbacks = OpaquePointer
private typealias Session = OpaquePointer
/// Session, stream, error code, libcurl's connection: nghttp2_on_stream_close_callback(3).
private typealias StreamCloseCallback = @convention(c) (Session?, Int32, UInt32, UnsafeMutableRawPointer?) -> Int32
/// Session, frame or its header, libcurl's connection: nghttp2_on_frame_send_callback(3),
/// nghttp2_on_begin_frame_callback(3).
private typealias FrameCallback = @convention(c) (Session?, UnsafeRawPointer?, UnsafeMutableRawPointer?) -> Int32

/// Functions of nghttp2. The library is loaded, because libcurl just called it.
private enum NGHTTP2 {
    static let setStreamClose = unsafe function(
        "nghttp2_session_callbacks_set_on_stream_close_callback",
        as: (@convention(c) (Callbacks?, StreamCloseCallback?) -> Void).self)
    static let setBeginFrame = unsafe function(
        "nghttp2_session_callbacks_set_on_begin_frame_callback",
        as: (@convention(c) (Callbacks?, FrameCallback?) -> Void).self)
    static let setFrameSend = unsafe function(
        "nghttp2_session_callbacks_set_on_frame_send_callback",
        as: (@convention(c) (Callbacks?, FrameCallback?) -> Void).self)
    /// 1 once END_STREAM or RST_STREAM has come, 0 before, -1 without such a stream.
    static let remoteClose = unsafe function(
        "nghttp2_session_get_stream_remote_close", as: (@convention(c) (Session?, Int32) -> Int32).self)
    static let nextStream = unsafe function(
        "nghttp2_session_get_next_stream_id", as: (@convention(c) (Session?) -> UInt32).self)

    private static func function<F>(_ name: String, as type: F.Type) -> F {
        // RTLD_NEXT, which Swift does not import: the libraries behind the executable.
        guard let symbol = unsafe dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else {
            preconditionFailure("libnghttp2 has no \(name)")
        }
        return unsafe unsafeBitCast(symbol, to: type)
    }
}

/// The fields of nghttp2_frame used here: size_t length, int32_t stream_id, uint8_t type, flags, reserved; a GOAWAY
/// also has last_stream_id and error_code.
@safe private struct Frame {
    let start: UnsafeRawPointer

    var stream: Int32 { unsafe start.load(fromByteOffset: 8, as: Int32.self) }
    var isReset: Bool { unsafe start.load(fromByteOffset: 12, as: UInt8.self) == 3 }
    var isGoAway: Bool { unsafe start.load(fromByteOffset: 12, as: UInt8.self) == 7 }
    var goAwayCode: UInt32 { unsafe start.load(fromByteOffset: 20, as: UInt32.self) }
}

/// libcurl's callback: a function of its code, the same for each session.
private let libcurlStreamClose = Atomic<UInt>(0)

/// The stream of each session, by its address, whose RST_STREAM came before END_STREAM. A session has one at most: the
/// frame that is being read.
private let resetStreams = Mutex<[UInt: Int32]>([:])

private func tellLibcurl(_ session: Session?, _ stream: Int32, _ code: UInt32, _ data: UnsafeMutableRawPointer?)
    -> Int32
{
    guard let callback = unsafe UnsafeRawPointer(bitPattern: libcurlStreamClose.load(ordering: .acquiring)) else {
        return 0
    }
    return unsafe unsafeBitCast(callback, to: StreamCloseCallback.self)(session, stream, code, data)
}

private let frameBegins: FrameCallback = { session, header, _ in
    guard let frame = unsafe header.map({ unsafe Frame(start: $0) }), frame.isReset else { return 0 }
    let isOpen = unsafe NGHTTP2.remoteClose(session, frame.stream) == 0
    resetStreams.withLock { $0[UInt(bitPattern: session)] = isOpen ? frame.stream : nil }
    return 0
}

/// RST_STREAM(NO_ERROR) ends a stream in order only behind END_STREAM (RFC 9113, section 8.1). Else libcurl is told
/// INTERNAL_ERROR (section 7).
private let streamCloses: StreamCloseCallback = { session, stream, code, data in
    let wasReset = resetStreams.withLock { streams in
        guard streams[UInt(bitPattern: session)] == stream else { return false }
        streams[UInt(bitPattern: session)] = nil
        return true
    }
    return unsafe tellLibcurl(session, stream, wasReset && code == 0 ? 2 : code, data)
}

/// nghttp2 sent a GOAWAY with an error code: it stops reading, without a call for any stream.
private let frameSent: FrameCallback = { session, start, data in
    guard let frame = unsafe start.map({ unsafe Frame(start: $0) }), frame.isGoAway, frame.goAwayCode != 0 else {
        return 0
    }
    // A client's streams are odd: RFC 9113, section 5.1.1.
    for stream in stride(from: 1, to: Int32(clamping: unsafe NGHTTP2.nextStream(session)), by: 2) {
        guard unsafe NGHTTP2.remoteClose(session, stream) == 0 else { continue }
        _ = unsafe tellLibcurl(session, stream, frame.goAwayCode, data)
    }
    return 0
}

/// Replaces nghttp2's function of this name for libcurl.
@_cdecl("nghttp2_session_callbacks_set_on_stream_close_callback")
package func setStreamCloseCallback(_ callbacks: OpaquePointer?, _ callback: UnsafeRawPointer?) {
    libcurlStreamClose.store(UInt(bitPattern: callback), ordering: .releasing)
    unsafe NGHTTP2.setStreamClose(callbacks, streamCloses)
    unsafe NGHTTP2.setBeginFrame(callbacks, frameBegins)
    unsafe NGHTTP2.setFrameSend(callbacks, frameSent)
}
