import CLibnghttp2
import Reactor
import WireText

/// The header list that is being received.
struct ReceivedBlock {
    var start = 0
    var bytes = 0
    var isTooLarge = false
    /// Whether the list begins with a pseudo-header field. A head does, trailers do not.
    var isHead = false
    /// Whether the head's status is 1xx.
    var isInterim = false
    /// Whether more of the list may follow in a later `receive`.
    var isOpen = false
    /// Whether the list began when many had been decoded.
    var isLate = false
}

// Functions that libnghttp2's callbacks call. They note events, and give libnghttp2 the bytes to send.
extension HTTP2Session {
    // MARK: Received

    func frameBegan(_ header: nghttp2_frame_hd) {
        let flags = header.flags
        // The frame shows that the last block has ended. No callback reports the end of a refused block.
        if UInt32(header.type) != NGHTTP2_CONTINUATION.rawValue { block.isOpen = false }
        switch UInt32(header.type) {
        case NGHTTP2_DATA.rawValue:
            let isPadded = flags & UInt8(NGHTTP2_FLAG_PADDED.rawValue) != 0
            let isEnd = flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
            // Up to 256 bytes can be padding alone.
            let isEmpty = header.length == 0 || isPadded && header.length <= 256
            if !isEmpty { budget.earn(1) } else if !isEnd || isPadded { budget.spend(1) }
        case NGHTTP2_HEADERS.rawValue, NGHTTP2_CONTINUATION.rawValue: break
        case NGHTTP2_RST_STREAM.rawValue: budget.noteReset()
        default: budget.spend(1)
        }
    }

    func headersBegan(_ id: Int32) {
        // No list is in use once all events were taken.
        if events.isEmpty { received.removeAll() }
        block = ReceivedBlock(start: received.count, isOpen: true)
        if load.decoded >= settings.maxDecodedBytes { block.isLate = true }
        load.decoded += HTTP2Load.listWork
        if role == .server, streams[id] == nil { streams[id] = HTTP2Stream(isAnnounced: false) }
    }

    /// Drops the lists before the one that is being received. No list is in use once all events were taken.
    func dropReceived() {
        guard block.isOpen, block.start > 0, events.isEmpty else { return }
        received.removeFirst(block.start)
        block.start = 0
    }

    /// Notes a field. The first field of a list may pause the reading, because many lists have been decoded.
    func field(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        if block.bytes == 0, block.isLate { load.isPaused = true }
        // Checked even if the list is too large: a head must not pass for trailers.
        if block.bytes == 0, name.count > 0, name[0] == ASCII.colon {
            block.isHead = true
            // `:status` is the only pseudo-header field of an answer.
            block.isInterim = role == .client && value.count > 0 && value[0] == UInt8(ascii: "1")
        }
        let size = name.count + value.count + 32
        block.bytes += size
        load.decoded += size
        guard !block.isTooLarge, block.bytes <= settings.maxHeaderListBytes,
            received.count - block.start < settings.maxFields
        else {
            block.isTooLarge = true
            return
        }
        received.append(name, value)
    }

    func frameCame(_ frame: nghttp2_frame) {
        let header = unsafe frame.hd
        switch UInt32(header.type) {
        case NGHTTP2_HEADERS.rawValue:
            block.isOpen = false
            guard let stream = streams[header.stream_id] else { return }
            let list = HTTP2Block(
                fields: block.start..<received.count,
                endsStream: header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0, isTooLarge: block.isTooLarge,
                size: block.bytes)
            if !block.isHead {
                events.add(.trailers(stream: header.stream_id, list))
            } else if block.isInterim {
                events.add(.interim(stream: header.stream_id, list))
            } else {
                stream.isAnnounced = true
                events.add(.head(stream: header.stream_id, list))
            }
            noteEnd(header, stream)
        case NGHTTP2_DATA.rawValue:
            if let stream = streams[header.stream_id] { noteEnd(header, stream) }
        case NGHTTP2_RST_STREAM.rawValue: streams[header.stream_id]?.isReset = true
        case NGHTTP2_SETTINGS.rawValue:
            if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0 { noteSettings() }
        case NGHTTP2_PING.rawValue:
            guard header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 else { return }
            let bytes = unsafe frame.ping.opaque_data
            let value = unsafe withUnsafeBytes(of: bytes) { unsafe $0.loadUnaligned(as: UInt64.self) }
            events.add(.pong(UInt64(bigEndian: value)))
        case NGHTTP2_GOAWAY.rawValue:
            let last = unsafe frame.goaway.last_stream_id
            peer.lastHandled = last
            events.add(.goAway(lastStream: last, HTTP2Code(rawValue: unsafe frame.goaway.error_code)))
        default: break
        }
    }

    private func noteEnd(_ header: nghttp2_frame_hd, _ stream: HTTP2Stream) {
        guard header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else { return }
        stream.hasEnded = true
        events.add(.ended(stream: header.stream_id))
    }

    /// - Returns: `false` if the bytes are not a part of the input.
    func piece(_ id: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Bool {
        guard let bytes = unsafe bytes, let base = unsafe input.baseAddress else { return count == 0 }
        let offset = unsafe bytes - base
        guard offset >= 0, unsafe offset + count <= input.count else { return false }
        if !settings.boundsBodies {
            unsafe nghttp2_session_consume_connection(handle, count)
        } else if let stream = streams[id], !stream.isForfeit {
            stream.unconsumed += count
            load.unconsumed += count
        }
        events.add(.data(stream: id, offset..<(offset + count)))
        return true
    }

    func streamClosed(_ id: Int32, _ code: HTTP2Code) {
        guard let stream = streams.removeValue(forKey: id) else { return }
        forfeit(stream)
        load.unsentBytes -= stream.output.count
        load.unsentHeads -= stream.unsentHeads.bytes
        guard stream.isAnnounced else { return }
        if stream.hasEnded, !stream.isReset, code == .noError { budget.noteEnd() }
        // The server sends this code, or libnghttp2 sets it for a stream above the number in the server's GOAWAY.
        let isRefused = code == .refusedStream && role == .client
        let isUnprocessed = stream.mayRetryUnsent ?? isRefused
        events.add(
            .closed(
                stream: id,
                HTTP2Closing(
                    code: code, hasEnded: stream.hasEnded, isReset: stream.isReset, isUnprocessed: isUnprocessed)))
    }

    // MARK: Sent

    /// Tells libnghttp2 how much of the stream's output goes into the next DATA frame.
    func provide(_ id: Int32, _ length: Int, _ flags: inout UInt32) -> Int {
        guard let stream = streams[id] else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        let count = min(length, stream.output.count)
        if count == stream.output.count, stream.isEnding {
            flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
            if stream.trailers.count > 0 {
                flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                let submitted = unsafe withPairs(of: stream.trailers) { pairs in
                    unsafe nghttp2_submit_trailer(handle, id, pairs.baseAddress, pairs.count)
                }
                note(unsentHead: stream.trailers, of: stream)
                guard submitted == 0 else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
            }
        } else if count == 0 {
            stream.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        flags |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue
        return count
    }

    /// Appends a DATA frame to the output.
    /// - Returns: `false` if the stream has fewer bytes than `provide` returned.
    func sendData(_ id: Int32, _ header: Span<UInt8>, _ count: Int) -> Bool {
        guard let stream = streams[id], stream.output.count >= count else { return false }
        output.append(header)
        output.append(first: count, of: stream.output)
        stream.output.consume(count)
        load.unsentBytes -= count
        if stream.output.isEmpty {
            giveMemoryBack(of: stream)
            resetIfCut(stream, id)
        }
        if stream.wantsRoom, stream.output.count <= settings.streamOutput / 2 {
            stream.wantsRoom = false
            events.add(.room(stream: id))
        }
        // The peer answers each DATA frame with one or two WINDOW_UPDATEs.
        budget.earn(4)
        return true
    }

    func frameSent(_ header: nghttp2_frame_hd) {
        let type = UInt32(header.type)
        if type == NGHTTP2_RST_STREAM.rawValue { return noteReset() }
        let isEnd = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        guard type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue && isEnd,
            let stream = streams[header.stream_id]
        else { return }
        if type == NGHTTP2_HEADERS.rawValue {
            noteSentHead(of: stream)
            widen(stream, header.stream_id)
            resetIfCut(stream, header.stream_id)
        }
        guard isEnd else { return }
        events.add(.sent(stream: header.stream_id))
        // The answer is complete, so the rest of the request is not needed (RFC 9113, section 8.1).
        if role == .server, !stream.hasEnded { reset(header.stream_id, .noError) }
    }

    private func noteReset() {
        if ownResets > 0 {
            ownResets -= 1
        } else {
            // A peer that breaks the rules on many streams makes libnghttp2 reset them all (CVE-2025-8671).
            budget.noteReset()
        }
    }

    func frameNotSent(_ header: nghttp2_frame_hd, _ error: Int32) {
        let type = UInt32(header.type)
        if type == NGHTTP2_RST_STREAM.rawValue, ownResets > 0 { ownResets -= 1 }
        guard type == NGHTTP2_HEADERS.rawValue, let stream = streams[header.stream_id] else { return }
        if role == .client {
            stream.mayRetryUnsent =
                error != NGHTTP2_ERR_FRAME_SIZE_ERROR.rawValue && error != NGHTTP2_ERR_HEADER_COMP.rawValue
        } else {
            reset(header.stream_id, .internalError)
        }
    }
}
