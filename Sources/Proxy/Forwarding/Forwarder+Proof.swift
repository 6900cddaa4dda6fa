import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// Tokens bound to a key: RFC 9449, sections 7 to 9.
extension Forwarder {
    /// Appends the proof for the head behind `start`.
    /// - Returns: `false` when signing failed.
    func writeProof(
        by key: DPoPKey, of token: AccessToken, _ upstream: Upstream, _ destination: Destination, from start: Int,
        to output: inout ByteBuffer
    ) -> Bool {
        let host = hostField(upstream, destination)
        let (method, target) = Self.requestLine(output.bytes.extracting(start...))
        let server = "\(destination.origin.scheme.rawValue)://\(host.span.text)"
        let url = target == "*" ? server : target.hasPrefix("/") ? server + target : target
        let nonce = upstream.nonces.newest(of: host)
        guard let proof = try? key.proof(method: method, url: url, token: token, nonce: nonce) else { return false }
        output.append("DPoP: ")
        proof.withSpan { output.append($0) }
        output.append("\r\n")
        return true
    }

    private static func requestLine(_ text: Span<UInt8>) -> (method: String, target: String) {
        let head = OutgoingHead(text)
        return (head.method.text, head.target.text)
    }

    /// Stores an answer's nonce.
    /// - Returns: whether the answer is a 401 that only asks for the nonce.
    func takesNonce(_ answer: borrowing ResponseHead) -> Bool {
        guard current.token?.binding != nil, let upstream = current.upstream,
            let destination = current.admitted.destination
        else { return false }
        let line = answer.bytes
        let bytes = line.span
        var nonce: String?
        for field in answer.fields where bytes[field.name].namesField(Self.nonceField) {
            nonce = DPoPNonce.read(bytes[field.value])
        }
        guard let nonce else { return false }
        upstream.nonces.note(nonce, of: hostField(upstream, destination))
        return answer.status == 401 && Challenge.wantNonce(Self.challenges(answer))
    }

    private static let nonceField = Array(DPoPNonce.field.utf8)

    static func challenges(_ answer: borrowing ResponseHead) -> [[UInt8]] {
        let line = answer.bytes
        let bytes = line.span
        var values: [[UInt8]] = []
        for field in answer.fields where field.known == .wwwAuthenticate {
            values.append(Array(bytes[field.value].text.utf8))
        }
        return values
    }
}

/// The newest nonce of each server of one upstream. A wildcard may have many servers; the latest used stay.
struct NonceList {
    private var entries: [(host: [UInt8], nonce: String)] = []
    private static let limit = 256

    func newest(of host: [UInt8]) -> String? { entries.last { $0.host == host }?.nonce }

    mutating func note(_ nonce: String, of host: [UInt8]) {
        if let index = entries.lastIndex(where: { $0.host == host }) {
            entries.remove(at: index)
        } else if entries.count >= Self.limit {
            entries.removeFirst()
        }
        entries.append((host, nonce))
    }
}
