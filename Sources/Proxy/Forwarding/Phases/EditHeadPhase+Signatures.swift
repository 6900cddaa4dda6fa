import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import SigV4
import WireText

// Signatures of the head: DPoP proofs (RFC 9449, section 4) and AWS Signature Version 4.
extension EditHeadPhase {
    /// Appends the DPoP proof for the head, which begins at `start` in `output`.
    /// - Returns: `false` when signing failed.
    static func prove(
        _ context: inout Context, _ key: DPoPKey, _ token: AccessToken, _ upstream: Upstream,
        _ destination: Destination, from start: Int, to output: inout ByteBuffer
    ) -> Bool {
        let host = hostField(context.admitted.named, upstream, destination)
        let (method, target) = requestLine(output.bytes.extracting(start...))
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

    static func signedTarget(_ context: inout Context, _ upstream: Upstream) -> SignableTarget {
        var text = ByteBuffer(isSecret: true)
        if case .path(let path) = context.admitted.target {
            context.stream.request.with { writePath($1[path], &context, upstream, to: &text) }
        }
        return SignableTarget(text.bytes)
    }

    /// Appends the fields of the signature. The signature covers the head, which begins at `start` in `output`.
    /// - Returns: `false` when signing failed.
    static func sign(
        _ context: inout Context, _ signer: RequestSigner, _ target: SignableTarget, from start: Int,
        to output: inout ByteBuffer
    ) -> Bool {
        guard let signing = context.signing, let payload = signing.payload else { return false }
        let namesPayload =
            signer.isStorage || context.stream.request.with { SignedPayload.own($0, $1) != nil }
        return sign(signer, signing.keys, target, payload, namesPayload: namesPayload, from: start, to: &output)
    }

    static func sign(
        _ signer: RequestSigner, _ keys: SigningKeys, _ target: SignableTarget, _ payload: [UInt8],
        namesPayload: Bool, from start: Int, to output: inout ByteBuffer
    ) -> Bool {
        let date = RequestSigner.date(RequestSigner.now())
        let request = signed(output.bytes.extracting(start...), target, payload, namesPayload)
        guard let signature = try? signer.sign(request, with: keys, date: date) else { return false }
        if namesPayload { output.append(line: "X-Amz-Content-Sha256: ", payload) }
        output.append(line: "X-Amz-Date: ", date)
        keys.withToken { token in
            output.append("X-Amz-Security-Token: ")
            output.append(token)
            output.append("\r\n")
        }
        output.append(line: "Authorization: ", signature)
        return true
    }

    private static func signed(
        _ text: Span<UInt8>, _ target: SignableTarget, _ payload: [UInt8], _ namesPayload: Bool
    ) -> RequestSigner.Request {
        let head = OutgoingHead(text)
        var request = RequestSigner.Request(
            method: [UInt8](copying: head.method), target: target, payload: payload, namesPayload: namesPayload)
        head.forEachField { name, value in
            let name = [UInt8](copying: name).map(ASCII.lowercased)
            guard RequestSigner.signs(name) else { return }
            request.fields.append((name, [UInt8](copying: value)))
        }
        return request
    }
}
