import CLibnghttp2

/// Error code of RST_STREAM and GOAWAY (RFC 9113, section 7).
public struct HTTP2Code: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let noError = HTTP2Code(rawValue: 0)
    public static let protocolError = HTTP2Code(rawValue: 1)
    public static let internalError = HTTP2Code(rawValue: 2)
    public static let refusedStream = HTTP2Code(rawValue: 7)
    public static let cancel = HTTP2Code(rawValue: 8)
    public static let enhanceYourCalm = HTTP2Code(rawValue: 11)
}

/// A failed call of libnghttp2, or a peer that floods.
public enum HTTP2Error: Error, Sendable, Equatable {
    /// - Parameter message: text of nghttp2_strerror(3), without bytes of the peer.
    case library(operation: String, code: Int32, message: String)
    /// The peer sends too many frames without content, or causes too many resets.
    case flood
    /// The session has failed before.
    case failed
}

/// The calls of libnghttp2 that can fail.
enum Libnghttp2 {
    /// - Parameter result: a negative number is an error (nghttp2_error).
    @discardableResult
    static func check<Number: FixedWidthInteger>(
        _ operation: String, _ result: Number
    ) throws(HTTP2Error) -> Number {
        guard result < 0 else { return result }
        let code = Int32(truncatingIfNeeded: result)
        throw .library(operation: operation, code: code, message: unsafe String(cString: nghttp2_strerror(code)))
    }
}
