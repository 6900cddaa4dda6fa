import HTTPMessage
import HTTPServer
import WireText

/// Authentication of a connection instead of a request: NTLM and Negotiate (RFC 4559, section 6). The server takes all
/// further requests of the connection for the same person's.
enum ConnectionLogin {
    private static let schemes = ["ntlm", "negotiate"].map { Array($0.utf8) }

    static func isIn(_ request: ReceivedRequest) -> Bool {
        request.with { head, bytes in
            head.fields.contains { $0.known == .authorization && isLogin(bytes[$0.value]) }
        }
    }

    private static func isLogin(_ value: Span<UInt8>) -> Bool {
        schemes.contains { scheme in
            value.count >= scheme.count && value.extracting(first: scheme.count).equalsIgnoringCase(scheme)
                && (value.count == scheme.count || !ASCII.isTokenByte(value[scheme.count]))
        }
    }
}
