import HTTPMessage
import WireText

/// Status of a gRPC call (`grpc-status`). Codes above 16 are undefined, but servers may send them.
struct GRPCStatus: Equatable, Sendable {
    let code: UInt16

    init(_ code: UInt16) { self.code = code }

    static let unknown = GRPCStatus(2)
    static let deadlineExceeded = GRPCStatus(4)
    static let unimplemented = GRPCStatus(12)
    static let `internal` = GRPCStatus(13)
    static let unavailable = GRPCStatus(14)
    static let dataLoss = GRPCStatus(15)
    static let permissionDenied = GRPCStatus(7)
    static let unauthenticated = GRPCStatus(16)

    /// Whether a gateway may have sent this status. If a gateway sent it, the server has not checked the token.
    var mayPrecedeTheServer: Bool {
        [.unknown, .deadlineExceeded, .unimplemented, .internal, .unavailable, .dataLoss].contains(self)
    }
}

// MARK: On the wire

extension GRPCStatus {
    private static let field = Array("grpc-status".utf8)

    /// Parses one to three digits; `nil` for any other value.
    private init?(_ value: Span<UInt8>) {
        guard (1...3).contains(value.count) else { return nil }
        var code: UInt16 = 0
        for index in value.indices {
            guard ASCII.isDigit(value[index]) else { return nil }
            code = code * 10 + UInt16(value[index] - ASCII.zero)
        }
        self.code = code
    }

    /// Reads the status in an answer's head; `nil` without a valid status. No message follows a head with a status.
    init?(_ answer: borrowing ResponseHead) {
        let received = answer.bytes
        let bytes = received.span
        for field in answer.fields where field.known == .other && bytes[field.name].equalsIgnoringCase(Self.field) {
            self.init(bytes[field.value])
            return
        }
        return nil
    }

    init?(trailers: [(name: [UInt8], value: [UInt8])]) {
        guard let trailer = trailers.first(where: { $0.name.span.equalsIgnoringCase(Self.field) }) else { return nil }
        self.init(trailer.value.span)
    }
}
