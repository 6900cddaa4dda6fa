import Configuration
import Heimdallr
import WireText

/// A JWT-SVID of the SPIFFE Workload API, by one call of gRPC on the agent's socket (SPIFFE Workload API, section 6;
/// gRPC over HTTP/2). Made anew for each use; agents keep them.
struct WorkloadAPI: Sendable {
    let settings: SPIFFESettings
    let server: RemoteServer

    func secret() async throws(SecretProviderError) -> Secret {
        let answer = try await server.answer(
            "http://localhost/SpiffeWorkloadAPI/FetchJWTSVID",
            [
                .init(name: "Content-Type", value: "application/grpc"), .init(name: "TE", value: "trailers"),
                .init(name: "workload.spiffe.io", value: "true"),
            ], method: "POST", body: Secret(request))
        let field = { (name: String) in answer.headers.last { $0.name.lowercased() == name }?.value }
        guard answer.status == 200, field("grpc-status") == "0" else {
            let words = field("grpc-message").map { PercentEncoding.uri.decode($0.utf8) ?? $0 } ?? ""
            throw server.fault(
                field("grpc-status").map {
                    "the call ended with status \(ForeignText.printable($0)) \(ForeignText.printable(words))"
                }
                    ?? "the answer is not one of gRPC: is \(settings.socket) the agent's socket?")
        }
        guard let token = answer.content.withSpan(token) else {
            throw server.fault(
                settings.id.isEmpty ? "the agent has no identity for this process" : "the agent has no such `id` here")
        }
        return token
    }

    /// A message of gRPC: five bytes, then `JWTSVIDRequest` with `audience` (1) and `spiffe_id` (2).
    private var request: [UInt8] {
        var fields = ProtobufWriter()
        fields.text(1, settings.audience)
        fields.text(2, settings.id)
        return [0] + UInt32(fields.bytes.count).bigEndianBytes + fields.bytes
    }

    /// Returns the token of the first `JWTSVID` (1) of the answer that has the wanted identity: `spiffe_id` is its field
    /// 1, `svid` its field 2.
    private func token(_ answer: Span<UInt8>) -> Secret? {
        guard answer.count > 5, answer[0] == 0 else { return nil }
        var message = ProtobufFields(answer, in: 5..<answer.count)
        while let field = message.next() {
            guard field.number == 1, case .bytes(let range) = field.value else { continue }
            var (id, token) = (0..<0, 0..<0)
            var inner = ProtobufFields(answer, in: range)
            while let part = inner.next() {
                switch (part.number, part.value) {
                case (1, .bytes(let place)): id = place
                case (2, .bytes(let place)): token = place
                default: break
                }
            }
            let isWanted = settings.id.isEmpty || [UInt8](copying: answer.extracting(id)) == Array(settings.id.utf8)
            if isWanted, !token.isEmpty { return Secret(answer.extracting(token)) }
        }
        return nil
    }
}
