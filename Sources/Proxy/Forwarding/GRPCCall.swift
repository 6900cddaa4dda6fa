import HTTPMessage
import WireText

enum GRPCCall {
    private static let type = Array("application/grpc".utf8)

    /// Whether the request is a POST of `application/grpc`, alone or with a suffix (`+proto`) or parameters. Not
    /// gRPC-Web, whose trailers are part of the body.
    static func isMade(by head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard head.methodKind == .post, let index = head.index(of: .contentType) else { return false }
        let value = bytes[head.fields[index].value]
        guard value.count >= type.count, value.extracting(first: type.count).equalsIgnoringCase(type) else {
            return false
        }
        guard value.count > type.count else { return true }
        let next = value[type.count]
        return next == ASCII.plus || next == ASCII.semicolon || ASCII.isBlank(next)
    }
}
