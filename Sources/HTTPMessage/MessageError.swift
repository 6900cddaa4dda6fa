/// Why a message is refused. Whoever sent it is at fault: the client for statuses of the 400s and 500s that answer a
/// request, the upstream for 502.
public struct MessageError: Error, Sendable, Equatable {
    /// The status code of the answer that refuses the message: 400, 414, 417, 431, 501, 505, or 502 for what an
    /// upstream sent.
    public var status: Int
    /// One fixed sentence that says what is wrong; never holds bytes of the message.
    public var detail: String

    public init(status: Int = 400, detail: String) {
        self.status = status
        self.detail = detail
    }

    init(_ detail: String) {
        self.init(status: 400, detail: detail)
    }

    /// The same fault in something an upstream sent.
    var fromUpstream: MessageError { MessageError(status: 502, detail: detail) }
}
