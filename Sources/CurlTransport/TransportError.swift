import CLibcurl
import Glibc

/// Why an exchange failed, in terms of whose fault it is.
public struct TransportError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        /// The upstream's name could not be resolved.
        case nameNotResolved
        case connectionRefused
        /// No route, reset while connecting, and the like.
        case connectionFailed
        case connectionTimedOut
        /// All places of the pool stayed taken until the deadline.
        case connectionLimit
        /// The address policy forbids the address that the name resolved to.
        case addressDenied
        /// The address is one of the process's own listeners.
        case loop
        case tlsHandshake
        case tlsCertificate
        /// A file of ours (trust anchors, client certificate, key) can't be used.
        case tlsConfiguration
        /// The proxy in between refused or could not be reached.
        case proxy
        /// The connection ended before the first byte of an answer.
        case connectionLost
        /// The connection ended within an answer.
        case responseTruncated
        /// What came is not HTTP.
        case responseMalformed
        /// The delegate would not have the request sent when its connection stood.
        case withheld
        /// The server would take the request over HTTP/1.1 only; nothing was sent.
        case http2Missing
        /// The delegate ended it.
        case aborted
        case `internal`
    }
    public let kind: Kind
    /// libcurl's own words and code, for a log; no secrets, but hostile bytes are possible.
    public let message: String

    public init(_ kind: Kind, message: String) {
        self.kind = kind
        self.message = message
    }

    public var description: String { message }
}

extension TransportError {
    /// What a finished transfer's code means (libcurl-errors(3)).
    init(_ code: CURLcode, message: String, systemError: Int, sawResponse: Bool, verdict: AddressPolicy.Verdict) {
        let kind: Kind =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST: .nameNotResolved
            case CURLE_COULDNT_RESOLVE_PROXY, CURLE_PROXY: .proxy
            case CURLE_COULDNT_CONNECT:
                switch verdict {
                case .denied: .addressDenied
                case .own: .loop
                case .allowed: systemError == Int(ECONNREFUSED) ? .connectionRefused : .connectionFailed
                }
            case CURLE_OPERATION_TIMEDOUT: .connectionTimedOut
            case CURLE_PEER_FAILED_VERIFICATION: .tlsCertificate
            case CURLE_SSL_CONNECT_ERROR: .tlsHandshake
            case CURLE_SSL_CERTPROBLEM, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ENGINE_NOTFOUND,
                CURLE_SSL_CIPHER, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_ISSUER_ERROR:
                .tlsConfiguration
            case CURLE_SEND_ERROR, CURLE_RECV_ERROR:
                sawResponse ? .responseTruncated : Self.isRefusal(message) ? .tlsHandshake : .connectionLost
            case CURLE_GOT_NOTHING, CURLE_SEND_FAIL_REWIND, CURLE_HTTP2,
                CURLE_HTTP2_STREAM, CURLE_PARTIAL_FILE:
                sawResponse ? .responseTruncated : .connectionLost
            // Only the pre-request hook aborts while no answer is there: it stops libcurl's silent resend.
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
    /// By TLS 1.3 a server judges the client's certificate when the client's part of the handshake is over: its alert is
    /// read as the first of the answer (RFC 8446, section 4.4.2.4).
    static func isRefusal(_ message: String) -> Bool {
        guard message.contains("SSL routines::") else { return false }
        return [
            "alert certificate ", "alert unknown ca", "alert bad certificate", "alert unsupported certificate",
            "alert access denied", "alert decrypt error", "alert handshake failure",
        ].contains { message.contains($0) }
    }
}

/// Checks a code of libcurl that only a mistake of ours or a lack of memory can make bad.
func check(_ code: CURLcode, _ call: StaticString) throws(TransportError) {
    guard code == CURLE_OK else {
        throw TransportError(.internal, message: "\(call): \(unsafe String(cString: curl_easy_strerror(code)))")
    }
}

func check(_ code: CURLMcode, _ call: StaticString) throws(TransportError) {
    guard code == CURLM_OK else {
        throw TransportError(.internal, message: "\(call): \(unsafe String(cString: curl_multi_strerror(code)))")
    }
}
