import CLibcurl
import Glibc
public import WireText

/// Failure of a connection or exchange. The kind tells its stage and cause.
public struct TransportError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        case nameNotResolved
        /// No name server answered before the deadline.
        case nameTimedOut
        case connectionRefused
        /// Another failure of the TCP connection, such as no route or a reset.
        case connectionFailed
        case connectionTimedOut
        /// This machine lacks what a connection needs, or forbids it. Neither the network nor the peer is at fault.
        case shortage(MachineShortage)
        /// All connections of the pool stayed in use until the deadline.
        case connectionLimit
        /// The address policy forbids the address that the name resolved to.
        case addressDenied
        case loop
        case tlsHandshake
        case tlsCertificate
        /// A local file (trust anchors, client certificate, key) is unusable.
        case tlsConfiguration
        case proxy
        /// The connection ended before the first byte of an answer.
        case connectionLost
        /// The connection ended within an answer.
        case responseTruncated
        case responseMalformed
        /// Our side withheld the request: its token or certificate became unusable, or its deadline passed.
        case withheld
        /// The server does not offer HTTP/2; nothing was sent.
        case http2Missing
        /// The server's first bytes are HTTP/2's, on a connection of HTTP/1.1.
        case http2Only(isSecure: Bool)
        /// Our side ended the exchange.
        case aborted
        case `internal`
    }
    public let kind: Kind
    /// Our message, or libcurl's with its code, for logs. Holds no secrets, but possibly hostile bytes of the peer.
    public let message: String

    /// The next proxy at fault; `nil` for other failures.
    public let nextProxy: NextProxyRefusal?

    public init(_ kind: Kind, message: String, nextProxy: NextProxyRefusal? = nil) {
        self.kind = kind
        self.message = message
        self.nextProxy = nextProxy
    }

    /// The failure of a request that a next proxy read and refused.
    public init(_ refusal: NextProxyRefusal) {
        self.init(.proxy, message: refusal.words, nextProxy: refusal)
    }

    /// The failure of HTTP/1.1 with a server that knows only HTTP/2.
    public static func http2Only(isSecure: Bool) -> TransportError {
        TransportError(
            .http2Only(isSecure: isSecure), message: "the server's first bytes are a SETTINGS frame of HTTP/2")
    }

    public var description: String { message }
}

extension TransportError {
    /// Makes the error for libcurl's result code of a transfer (libcurl-errors(3)).
    init(_ code: CURLcode, message: String, systemError: Int, sawResponse: Bool, verdict: AddressPolicy.Verdict) {
        let kind: Kind =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST: .nameNotResolved
            case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
            case CURLE_COULDNT_CONNECT:
                switch verdict {
                case .denied: .addressDenied
                case .own: .loop
                case .allowed:
                    if let shortage = MachineShortage(errno: Int32(truncatingIfNeeded: systemError)) {
                        .shortage(shortage)
                    } else {
                        systemError == Int(ECONNREFUSED) ? .connectionRefused : .connectionFailed
                    }
                }
            case CURLE_OPERATION_TIMEDOUT: .connectionTimedOut
            case CURLE_PEER_FAILED_VERIFICATION: .tlsCertificate
            case CURLE_SSL_CONNECT_ERROR: .tlsHandshake
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ENGINE_NOTFOUND,
                CURLE_SSL_CIPHER, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ISSUER_ERROR:
                .tlsConfiguration
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
                sawResponse ? .responseTruncated : Self.isRefusal(message) ? .tlsHandshake : .connectionLost
            case CURLE_GOT_NOTHING, CURLE_SEND_FAIL_REWIND, CURLE_PARTIAL_FILE:
                sawResponse ? .responseTruncated : .connectionLost
            // `maySend` refused to send the request a second time, or `NextProxyDialogue` to read more from a next proxy.
            case CURLE_ABORTED_BY_CALLBACK: .connectionLost
            case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_OUT_OF_MEMORY,
                CURLE_BAD_FUNCTION_ARGUMENT, CURLE_BAD_CONTENT_ENCODING:
                .responseMalformed
            case CURLE_WRITE_ERROR: .aborted
            default: .internal
            }
        self.init(kind, message: "\(message) (curl \(code.rawValue))")
    }
}

extension TransportError {
    /// Whether `message` reports a TLS alert that refuses the client. In TLS 1.3, this alert arrives after the
    /// handshake, in place of the answer (RFC 8446, section 4.4.2.4).
    static func isRefusal(_ message: String) -> Bool {
        blamesCertificate(message)
            || message.contains("SSL routines::") && message.contains("alert handshake failure")
    }

    /// Whether `message` reports a TLS alert about the client's certificate.
    static func blamesCertificate(_ message: String) -> Bool {
        guard message.contains("SSL routines::") else { return false }
        return [
            "alert certificate ", "alert unknown ca", "alert bad certificate", "alert unsupported certificate",
            "alert access denied", "alert decrypt error",
        ].contains { message.contains($0) }
    }

    /// Status of the next proxy's refusal; `nil` for other failures.
    public var nextProxyStatus: Int? { nextProxy?.status }
}

/// Checks a result code. Only a bug here or a lack of memory can make it an error.
func check(_ code: CURLMcode, _ call: StaticString) throws(TransportError) {
    guard code == CURLM_OK else {
        throw TransportError(.internal, message: "\(call): \(unsafe String(cString: curl_multi_strerror(code)))")
    }
}
