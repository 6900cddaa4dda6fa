import CLibnghttp2
import Reactor

/// One connection's HTTP/2 without I/O, on libnghttp2: received bytes in, bytes to send and events out. No method calls
/// back into its user. Loop's thread only.
///
/// After each `receive` and `fill`, take the events with `next`. When `isFinished` is true, close the connection. If
/// the connection ends first, open streams are cut without an event.
@safe public final class HTTP2Session {
    public let role: HTTP2Role
    let settings: HTTP2Settings
    let handle: OpaquePointer
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var streams: [Int32: HTTP2Stream] = [:]
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var events = EventQueue()
    /// Header lists of the events since the last `receive`.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    public internal(set) var received = HTTP2FieldList()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var block = ReceivedBlock()
    /// The bytes of the current `receive`.
    var input: UnsafeRawBufferPointer = unsafe .init(start: nil, count: 0)
    /// The output of the current `fill`.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var output = ByteBuffer()
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var budget: FrameBudget
    /// Number of our unsent RST_STREAM frames. libnghttp2 makes all other resets, because of the peer's faults.
    var ownResets = 0
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    public internal(set) var load = HTTP2Load()
    /// Facts from the peer's SETTINGS and GOAWAY.
    var peer = Peer()

    struct Peer {
        var hasSettings = false
        /// Highest stream number that the peer handles, from its GOAWAY.
        var lastHandled: Int32?
    }
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private(set) var error: HTTP2Error?
    private let spares: SpareBuffers

    /// Queues our SETTINGS; for a client, after the connection preface.
    /// - Parameter spares: lends memory for output that waits.
    public init(
        _ role: HTTP2Role, _ settings: HTTP2Settings = HTTP2Settings(), spares: SpareBuffers, at now: LoopTime
    ) throws(HTTP2Error) {
        self.role = role
        self.settings = settings
        self.spares = spares
        budget = FrameBudget(at: now)
        unsafe handle = try Self.makeHandle(role)
        unsafe nghttp2_session_set_user_data(handle, Unmanaged.passUnretained(self).toOpaque())
        try submitSettings()
    }

    deinit { unsafe nghttp2_session_del(handle) }

    private static func makeHandle(_ role: HTTP2Role) throws(HTTP2Error) -> OpaquePointer {
        var handle: OpaquePointer?
        let callbacks = try HTTP2Callbacks.shared.get()
        let make = unsafe role == .client ? nghttp2_session_client_new2 : nghttp2_session_server_new2
        try unsafe Libnghttp2.check("nghttp2_session_new2", make(&handle, callbacks.table, nil, callbacks.options))
        guard let handle = unsafe handle else { throw .failed }
        return unsafe handle
    }

    private func submitSettings() throws(HTTP2Error) {
        func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
            nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
        }
        let entries = [
            role == .server
                ? entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.maxStreams)
                : entry(NGHTTP2_SETTINGS_ENABLE_PUSH, 0),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.streamWindow),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.maxHeaderListBytes),
        ]
        try unsafe Libnghttp2.check(
            "nghttp2_submit_settings",
            entries.withUnsafeBufferPointer {
                unsafe nghttp2_submit_settings(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress, $0.count)
            })
        try unsafe Libnghttp2.check(
            "nghttp2_session_set_local_window_size",
            nghttp2_session_set_local_window_size(
                handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: settings.connectionWindow)))
    }

    // MARK: State

    /// Whether libnghttp2 has nothing more to read or to write, so that the connection should be closed.
    public var isFinished: Bool { !wantsRead && !wantsWrite }

    public var wantsRead: Bool { unsafe error == nil && nghttp2_session_want_read(handle) != 0 }

    public var wantsWrite: Bool { unsafe nghttp2_session_want_write(handle) != 0 }

    public var openStreams: Int { streams.count }

    public var hasSettings: Bool { peer.hasSettings }

    /// Number of streams that a peer is assumed to allow before its SETTINGS arrive.
    public static let assumedStreams = 100

    /// Number of streams that the peer lets us open.
    public var peersMaxStreams: Int {
        guard hasSettings else { return Self.assumedStreams }
        return Int(
            unsafe nghttp2_session_get_remote_settings(handle, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
    }

    /// Whether `request` may open a stream now. libnghttp2 would queue requests above the limit, without a bound.
    public var canRequest: Bool {
        unsafe error == nil && peer.lastHandled == nil && openStreams < peersMaxStreams
            && nghttp2_session_check_request_allowed(handle) != 0
    }

    /// The next event; `nil` when all were taken.
    public func next() -> HTTP2Event? { events.take() }

    // MARK: Bytes

    /// Processes bytes of the peer. Earlier header lists are no longer valid.
    /// - Parameter bytes: for a server, from the connection preface on.
    /// - Returns: the number of bytes processed. If `load.isPaused`, take the events, then call again with the other bytes,
    ///   even if there are none.
    /// - Throws: when the connection can't go on. A GOAWAY frame is then queued: send the output and close.
    @discardableResult
    public func receive(_ bytes: Span<UInt8>, at now: LoopTime) throws(HTTP2Error) -> Int {
        if let error { throw error }
        budget.refill(at: now)
        (load.decoded, load.isPaused) = (0, false)
        dropReceived()
        do throws(HTTP2Error) {
            let count = try unsafe bytes.withUnsafeBytes { bytes throws(HTTP2Error) in
                unsafe input = bytes
                defer { unsafe input = .init(start: nil, count: 0) }
                return try unsafe Libnghttp2.check(
                    "nghttp2_session_mem_recv",
                    nghttp2_session_mem_recv(
                        handle, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count))
            }
            if budget.isSpent { throw .flood }
            returnWindow()
            return count
        } catch {
            fail(error)
            throw error
        }
    }

    private func fail(_ error: HTTP2Error) {
        self.error = error
        // libnghttp2 itself queues no GOAWAY after these errors.
        let code: HTTP2Code =
            switch error {
            case .flood: .enhanceYourCalm
            case .library(_, let code, _) where Self.floods.contains(code): .enhanceYourCalm
            case .library(_, NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue, _): .protocolError
            case .library, .failed: .internalError
            }
        unsafe nghttp2_session_terminate_session(handle, code.rawValue)
    }

    /// Codes for floods. -905 is NGHTTP2_ERR_TOO_MANY_CONTINUATIONS.
    private static let floods = [NGHTTP2_ERR_FLOODED.rawValue, NGHTTP2_ERR_TOO_MANY_SETTINGS.rawValue, -905]

    /// Appends frames to `buffer` until it holds `limit` bytes; the last frame may go beyond.
    public func fill(_ buffer: inout ByteBuffer, limit: Int) throws(HTTP2Error) {
        swap(&buffer, &output)
        defer { swap(&buffer, &output) }
        settle()
        while output.count < limit {
            var frame: UnsafePointer<UInt8>?
            let count = try unsafe Libnghttp2.check(
                "nghttp2_session_mem_send", nghttp2_session_mem_send(handle, &frame))
            guard count > 0, let frame = unsafe frame else {
                // libnghttp2 drops the reset of a stream whose head is unsent, so some of our resets may never be sent.
                ownResets = 0
                break
            }
            output.append(unsafe Span(_unsafeStart: frame, count: count))
            // The peer may have made libnghttp2 send too many resets.
            if budget.isSpent, error == nil { fail(.flood) }
        }
    }

    /// Frees the memory of large header lists that are no longer in use.
    public func settle() { if events.isEmpty, !block.isOpen { received.trim() } }

    // MARK: The connection

    public func ping(_ value: UInt64) throws(HTTP2Error) {
        try unsafe withUnsafeBytes(of: value.bigEndian) { bytes throws(HTTP2Error) in
            _ = try unsafe Libnghttp2.check(
                "nghttp2_submit_ping",
                nghttp2_submit_ping(
                    handle, UInt8(NGHTTP2_FLAG_NONE.rawValue),
                    bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)))
        }
    }

    /// Announces the end by a GOAWAY with the highest possible stream number (RFC 9113, section 6.8). Servers only.
    public func announceEnd() throws(HTTP2Error) {
        try unsafe Libnghttp2.check("nghttp2_submit_shutdown_notice", nghttp2_submit_shutdown_notice(handle))
    }

    /// Accepts no further streams. Open streams continue; `isFinished` follows the last one.
    public func goAway(_ code: HTTP2Code) throws(HTTP2Error) {
        try unsafe Libnghttp2.check(
            "nghttp2_submit_goaway",
            nghttp2_submit_goaway(
                handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(handle),
                code.rawValue, nil, 0))
    }

    func noteSettings() {
        peer.hasSettings = true
        events.add(.settings)
    }

    func borrowMemory(for stream: HTTP2Stream) { stream.output.borrow(from: spares, makes: false) }

    func giveMemoryBack(of stream: HTTP2Stream) { stream.output.giveBack(to: spares) }
}

struct EventQueue {
    private var events: [HTTP2Event] = []
    private var taken = 0

    var isEmpty: Bool { taken == events.count }

    mutating func add(_ event: HTTP2Event) { events.append(event) }

    mutating func take() -> HTTP2Event? {
        guard taken < events.count else { return nil }
        defer {
            taken += 1
            if taken == events.count {
                events.removeAll(keepingCapacity: events.capacity <= 128)
                taken = 0
            }
        }
        return events[taken]
    }
}
