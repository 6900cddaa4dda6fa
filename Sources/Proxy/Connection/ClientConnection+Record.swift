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
            if isSent, let destination, case .path(let range) = target, !range.isEmpty {
                record.host = destination.host
                record.path = path(bytes[range])
                return
            }
            // Also of what was refused before it was known where it leads.
            let asked = head.asked(in: bytes)
            record.host = (isSent ? destination?.host : nil) ?? Array(bytes[asked.authority].text.utf8)
            record.path = asked.isRoot ? [root] : Array(bytes[asked.path].text.utf8)
        }
        record.status = wasCut ? 0 : status != 0 ? status : 499
        record.reason = refusal
        record.cause = malformation
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

    private func path(_ target: Span<UInt8>) -> [UInt8] {
        var end = 0
        while end < target.count, target[end] != UInt8(ascii: "?") { end += 1 }
        // A query alone stands behind the root.
        return end == 0 ? [root] : Array(target.extracting(0..<end).text.utf8)
    }

    /// For a target that names no path: OPTIONS without one is for the whole server (RFC 9112, section 3.2.4).
    private var root: UInt8 { head.methodKind == .options ? UInt8(ascii: "*") : UInt8(ascii: "/") }

    /// Tells of an exchange that failed.
    func report(_ error: TransportError) {
        let problem = Problem(error)
        var failure = UpstreamFailure(error: error, reason: problem.title, advice: problem.detail)
        failure.upstream = upstream?.name ?? Tunnels.name
        failure.client = upstream?.settings.client
        failure.requestID = requestID
        headBytes.withBytes { bytes in
            guard let upstream, let destination else {
                failure.url = Array(bytes[head.asked(in: bytes).authority].text.utf8)
                return
            }
            failure.url = Array("\(destination.origin.scheme.rawValue)://".utf8) + destination.host
            guard case .path(let range) = target else { return failure.url.append(UInt8(ascii: "*")) }
            failure.url += upstream.pathPrefix + path(bytes[range])
        }
        shard.observer.upstreamFailed(failure)
    }
}
