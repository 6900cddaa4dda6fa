/// Reason for refusing a message. Its sender is at fault: the client for 4xx and 5xx answers to a request, the upstream
/// for 502.
public struct MessageError: Error, Sendable, Equatable {
    /// Status code of the refusal: 400, 414, 417, 431, 501, 505, or 502 for an upstream's message.
    public var status: Int
    /// One fixed sentence about the fault; never holds bytes of the message.
    public var detail: String

    public init(status: Int = 400, detail: String) {
        self.status = status
        self.detail = detail
    }

    init(_ detail: String) { self.init(status: 400, detail: detail) }

    /// The same fault in an upstream's message.
    var fromUpstream: MessageError { MessageError(status: 502, detail: detail) }
}
