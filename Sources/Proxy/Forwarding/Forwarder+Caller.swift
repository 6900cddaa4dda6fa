import Configuration
import HTTPMessage
import HTTPServer
import Heimdallr

// Token of a request: the client's, or one exchanged for the caller's own.
extension Forwarder {
    func client(at upstream: Upstream) throws(Problem) -> Heimdallr? {
        guard let client = upstream.client, client.exchangesCallers else { return upstream.client }
        return try stream.request.with { head, bytes throws(Problem) in
            guard let token = BearerToken.range(head, bytes) else { throw .callerTokenNeeded }
            do throws(CallerRefusal) { return try client.client(of: bytes[token]) } catch { throw Problem(error) }
        }
    }

    func problem(_ error: HeimdallrError, at upstream: Upstream) -> Problem {
        if upstream.exchangesCallers {
            if error.refusesWhatWasShown { return .callerTokenRefused }
            // The caller's token may have expired during the wait.
            do throws(Problem) { _ = try client(at: upstream) } catch { return error }
        }
        return Problem(error, client: upstream.rules.settings.client ?? "", signIn: shard.observer.signIn)
    }
}

/// The token in `Authorization: Bearer` (RFC 6750, section 2.1).
enum BearerToken {
    /// `nil` for none, several, another scheme, or a hop-by-hop field.
    static func range(_ head: RequestHead, _ bytes: Span<UInt8>) -> ByteRange? {
        var found: ByteRange?
        for field in head.fields where field.known == .authorization && !field.isHopByHop {
            guard found == nil else { return nil }
            found = field.value
        }
        guard let found, found.count > scheme.count else { return nil }
        let (start, end) = (Int(found.start), Int(found.end))
        var index = start + scheme.count
        guard bytes.extracting(start..<index).equalsIgnoringCase(scheme), bytes[index] == UInt8(ascii: " ") else {
            return nil
        }
        while index < end, bytes[index] == UInt8(ascii: " ") { index += 1 }
        return index < end ? ByteRange(index, end) : nil
    }

    private static let scheme = Array("bearer".utf8)
}
