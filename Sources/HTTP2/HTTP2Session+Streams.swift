import CLibnghttp2
import Reactor

// Our messages on the session's streams.
extension HTTP2Session {
    /// Opens a stream. Clients only, while `canRequest` is true.
    /// - Parameters:
    ///   - fields: pseudo-header fields first.
    ///   - hasBody: whether `write`, `end` or trailers follow.
    public func request(_ fields: borrowing HTTP2FieldList, hasBody: Bool) throws(HTTP2Error) -> Int32 {
        if let error { throw error }
        let id = try unsafe submit("nghttp2_submit_request", fields, hasBody: hasBody) { pairs, provider in
            unsafe nghttp2_submit_request(handle, nil, pairs.baseAddress, pairs.count, provider, nil)
        }
        let stream = HTTP2Stream(isAnnounced: true)
        stream.isEnding = !hasBody
        streams[id] = stream
        return id
    }

    /// Whether `fill` has written the head of our request, at least in part. Before, a `reset` takes the request back
    /// without a trace. Clients only, for open streams.
    public func hasSentHead(of id: Int32) -> Bool { unsafe nghttp2_session_find_stream(handle, id) != nil }

    /// Queues the head of a final answer. Servers only.
    /// - Parameter hasBody: whether `write`, `end` or trailers follow.
    public func answer(_ id: Int32, _ fields: borrowing HTTP2FieldList, hasBody: Bool) throws(HTTP2Error) {
        guard let stream = streams[id] else { return }
        if !hasBody { stream.isEnding = true }
        _ = try unsafe submit("nghttp2_submit_response", fields, hasBody: hasBody) { pairs, provider in
            unsafe nghttp2_submit_response(handle, id, pairs.baseAddress, pairs.count, provider)
        }
        note(unsentHead: fields, of: stream)
    }

    /// Queues the head of an interim answer. Servers only.
    public func interim(_ id: Int32, _ fields: borrowing HTTP2FieldList) throws(HTTP2Error) {
        guard let stream = streams[id] else { return }
        _ = try unsafe submit("nghttp2_submit_headers", fields, hasBody: false) { pairs, _ in
            let none = UInt8(NGHTTP2_FLAG_NONE.rawValue)
            return unsafe nghttp2_submit_headers(handle, none, id, nil, pairs.baseAddress, pairs.count, nil)
        }
        note(unsentHead: fields, of: stream)
    }

    func note(unsentHead fields: borrowing HTTP2FieldList, of stream: HTTP2Stream) {
        let size = fields.bytes.count
        stream.unsentHeads.bytes += size
        stream.unsentHeads.count += 1
        load.unsentHeads += size
    }

    /// Notes that one of our heads or trailers was sent. Of several, each counts as their average.
    func noteSentHead(of stream: HTTP2Stream) {
        guard stream.unsentHeads.count > 0 else { return }
        let size = stream.unsentHeads.bytes / stream.unsentHeads.count
        stream.unsentHeads.bytes -= size
        stream.unsentHeads.count -= 1
        load.unsentHeads -= size
    }

    private func submit(
        _ operation: String, _ fields: borrowing HTTP2FieldList, hasBody: Bool,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>, UnsafePointer<nghttp2_data_provider>?) -> Int32
    ) throws(HTTP2Error) -> Int32 {
        let result = unsafe withPairs(of: fields) { pairs in
            guard hasBody else { return unsafe body(pairs, nil) }
            var provider = unsafe HTTP2Callbacks.bodies
            return unsafe body(pairs, &provider)
        }
        return try Libnghttp2.check(operation, result)
    }

    /// Takes a piece of our message's body. Discards the piece if our message or the stream has ended.
    /// - Parameter takesAll: whether to take all of a small piece, even if the buffer is full.
    /// - Returns: the number of bytes taken; after fewer than all, the event `.room` follows.
    public func write(_ piece: Span<UInt8>, to id: Int32, takesAll: Bool = false) -> Int {
        guard let stream = streams[id], !stream.isEnding else { return piece.count }
        let room = takesAll ? piece.count : max(0, settings.streamOutput - stream.output.count)
        let count = min(room, piece.count)
        if count < piece.count { stream.wantsRoom = true }
        if count > 0 {
            borrowMemory(for: stream)
            stream.output.append(piece.extracting(first: count))
            load.unsentBytes += count
            resume(stream, id)
        }
        return count
    }

    /// Number of bytes of our message that wait for the peer's window, or for the next `fill`.
    public func unsent(of id: Int32) -> Int { streams[id]?.output.count ?? 0 }

    public func end(_ id: Int32) {
        guard let stream = streams[id], !stream.isEnding else { return }
        stream.isEnding = true
        resume(stream, id)
    }

    /// Ends our message with trailers.
    public func end(_ id: Int32, trailers: consuming HTTP2FieldList) {
        guard let stream = streams[id], !stream.isEnding else { return }
        stream.trailers = trailers
        stream.isEnding = true
        resume(stream, id)
    }

    private func resume(_ stream: HTTP2Stream, _ id: Int32) {
        guard stream.isDeferred else { return }
        stream.isDeferred = false
        // Fails only for lack of memory.
        if unsafe nghttp2_session_resume_data(handle, id) != 0 { reset(id, .internalError) }
    }

    /// Lets the peer send `count` more bytes on a stream, because the user has consumed as many.
    public func consume(_ id: Int32, _ count: Int) {
        guard count > 0, let stream = streams[id] else { return }
        unsafe nghttp2_session_consume_stream(handle, id, count)
        let returned = min(count, stream.unconsumed)
        guard returned > 0 else { return }
        stream.unconsumed -= returned
        load.unconsumed -= returned
        returnWindow()
    }

    /// Enlarges a stream's receive window to `size` bytes, once its head is sent.
    public func widen(_ id: Int32, to size: Int) {
        guard let stream = streams[id] else { return }
        stream.window = size
        if hasSentHead(of: id) { widen(stream, id) }
    }

    func widen(_ stream: HTTP2Stream, _ id: Int32) {
        guard stream.window > 0 else { return }
        // Fails only for lack of memory. The window stays as it was then.
        _ = unsafe nghttp2_session_set_local_window_size(
            handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, Int32(clamping: stream.window))
        stream.window = 0
    }

    /// Gives the connection's window back all bytes but the unconsumed ones, padding and ignored bytes too. libnghttp2
    /// would wait until they are half of the window: that may never be, because unread bodies hold the other half.
    func returnWindow() {
        guard settings.boundsBodies else { return }
        let received = unsafe Int(nghttp2_session_get_effective_recv_data_length(handle))
        let count = received - load.unconsumed
        guard count >= settings.connectionWindow / 8 else { return }
        // Fails only for lack of memory. The next call tries again.
        _ = unsafe nghttp2_submit_window_update(handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(clamping: count))
    }

    /// Gives the connection's window all bytes of the peer's message back, also those that are still to come. The user
    /// has dropped them, and gives the stream's window nothing back.
    public func forfeit(_ id: Int32) { if let stream = streams[id] { forfeit(stream) } }

    func forfeit(_ stream: HTTP2Stream) {
        stream.isForfeit = true
        guard stream.unconsumed > 0 else { return }
        load.unconsumed -= stream.unconsumed
        stream.unconsumed = 0
        returnWindow()
    }

    /// Refuses a request that is too much for the connection. It counts as a reset by the peer.
    public func refuse(_ id: Int32) {
        let own = ownResets
        reset(id, .refusedStream)
        ownResets = own
    }

    /// Queues RST_STREAM, and drops our unsent output. The event `.closed` follows when `fill` writes the frame.
    public func reset(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = streams[id], !stream.hasSentReset else { return }
        stream.hasSentReset = true
        stream.isEnding = true
        forfeit(stream)
        let result = unsafe nghttp2_submit_rst_stream(
            handle, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
        // A reset after the peer's protocol error counts against the peer's budget.
        if result == 0, code != .protocolError { ownResets += 1 }
    }

    /// Queues RST_STREAM behind our unsent output, which is not complete.
    public func cut(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = streams[id] else { return }
        stream.cut = code
        resetIfCut(stream, id)
    }

    /// Queues the RST_STREAM of a cut once all output is sent. libnghttp2 would send it before our head and body.
    func resetIfCut(_ stream: HTTP2Stream, _ id: Int32) {
        guard let code = stream.cut, stream.output.isEmpty, stream.unsentHeads.count == 0 else { return }
        reset(id, code)
    }

    /// Lends the fields in libnghttp2's form. libnghttp2 copies them.
    func withPairs<Result>(
        of fields: borrowing HTTP2FieldList,
        _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        let lines = fields.fields
        return unsafe fields.bytes.bytes.withUnsafeBufferPointer { bytes in
            let base = unsafe UnsafeMutablePointer(mutating: bytes.baseAddress)
            let pairs = UnsafeMutableBufferPointer<nghttp2_nv>.allocate(capacity: lines.count)
            defer { unsafe pairs.deallocate() }
            for (index, line) in lines.enumerated() {
                unsafe pairs.initializeElement(
                    at: index,
                    to: nghttp2_nv(
                        name: base.map { unsafe $0 + line.name.lowerBound },
                        value: base.map { unsafe $0 + line.value.lowerBound }, namelen: line.name.count,
                        valuelen: line.value.count, flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
            }
            return unsafe body(pairs)
        }
    }
}
