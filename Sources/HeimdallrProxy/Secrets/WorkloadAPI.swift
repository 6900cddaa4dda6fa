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
        let fields = Self.field(1, settings.audience) + (settings.id.isEmpty ? [] : Self.field(2, settings.id))
        let count = UInt32(fields.count)
        return [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + fields
    }

    private static func field(_ number: UInt8, _ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var output = [number << 3 | 2]
        var count = bytes.count
        while count >= 0x80 {
            output.append(UInt8(count & 0x7F) | 0x80)
            count >>= 7
        }
        return output + [UInt8(count)] + bytes
    }

    /// Returns the token of the first `JWTSVID` (1) of the answer that has the wanted identity: `spiffe_id` is its field
    /// 1, `svid` its field 2.
    private func token(_ answer: Span<UInt8>) -> Secret? {
        guard answer.count > 5, answer[0] == 0 else { return nil }
        var message = ProtobufFields(answer, 5..<answer.count)
        while let field = message.next() {
            guard field.number == 1 else { continue }
            var (id, token) = (0..<0, 0..<0)
            var inner = ProtobufFields(answer, field.bytes)
            while let part = inner.next() {
                if part.number == 1 { id = part.bytes }
                if part.number == 2 { token = part.bytes }
            }
            let isWanted = settings.id.isEmpty || [UInt8](copying: answer.extracting(id)) == Array(settings.id.utf8)
            if isWanted, !token.isEmpty { return Secret(answer.extracting(token)) }
        }
        return nil
    }
}

/// The length-delimited fields of a message of Protocol Buffers, in order; others are passed over, and a malformed
/// message ends.
struct ProtobufFields: ~Escapable {
    private let bytes: Span<UInt8>
    private var rest: Range<Int>

    @_lifetime(copy bytes)
    init(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        self.bytes = bytes
        rest = range
    }

    mutating func next() -> (number: Int, bytes: Range<Int>)? {
        while let tag = integer() {
            let count: Int
            switch tag & 7 {
            case 0:
                guard integer() != nil else { return nil }
                continue
            case 1: count = 8
            case 2:
                guard let length = integer() else { return nil }
                count = length
            case 5: count = 4
            default: return nil
            }
            guard count <= rest.count else { return nil }
            let field = rest.prefix(count)
            rest = rest.dropFirst(count)
            if tag & 7 == 2 { return (tag >> 3, field) }
        }
        return nil
    }

    /// Reads a number of at most 31 bits.
    private mutating func integer() -> Int? {
        var value = 0
        for shift in stride(from: 0, to: 70, by: 7) {
            guard let position = rest.first else { return nil }
            rest = rest.dropFirst()
            let byte = bytes[position]
            if shift < 31 { value |= Int(byte & 0x7F) << shift }
            if byte < 0x80 { return value > Int(Int32.max) ? nil : value }
        }
        return nil
    }
}
