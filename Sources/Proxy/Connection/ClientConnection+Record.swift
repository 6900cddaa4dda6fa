import Configuration
import CurlTransport
import HTTPMessage
import Reactor

// What the access log says of a request.
extension ClientConnection {
    var accessRecord: AccessRecord {
        var record = AccessRecord()
        headBytes.withBytes { bytes in
            guard !bytes.isEmpty else { return }
            record.method = Array(bytes[head.method].text.utf8)
            if case .path(let range) = target {
                let path = bytes[range]
                var end = 0
                while end < path.count, path[end] != UInt8(ascii: "?") { end += 1 }
                record.path = Array(path.extracting(0..<end).text.utf8)
            }
            record.host = (isSent ? destination?.host : nil) ?? Array(bytes[askedAuthority(bytes)].text.utf8)
        }
        record.status = wasCut ? 0 : status != 0 ? status : 499
        record.reason = refusal
        record.requestID = requestID
        record.bytesSent = bytesSent
        record.bytesReceived = UInt64(body.taken) + switchedCount
        if let tunnel {
            record.bytesSent = tunnel.toClient.count
            record.bytesReceived = tunnel.toUpstream.count
        }
        record.duration = shard.loop.now.since(started)
        record.upstream = upstream?.name
        record.client = upstream?.settings.client
        record.peer = peer
        record.address = address
        record.user = caller.user
        return record
    }

    /// By what name the request is found in logs.
    var requestID: [UInt8] {
        let own: [UInt8]? = headBytes.withBytes { bytes in
            bytes.isEmpty ? nil : RequestID.read(head.fields, in: bytes)
        }
        if let own { return own }
        let number = requestNumber ?? shard.nextRequestNumber()
        requestNumber = number
        return RequestID.own(shard.requestsBegin, number)
    }

    /// The target's where it has one (RFC 9112, section 3.2.2), else Host.
    private func askedAuthority(_ bytes: Span<UInt8>) -> ByteRange {
        if head.methodKind == .connect { return head.target }
        guard case .absolute(_, let authority, _) = try? RequestTarget(parsing: bytes, head: head) else {
            return head.host
        }
        return authority
    }
}
