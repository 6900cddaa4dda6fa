/// Reason for refusing a message: a client's request, or with status 502 an upstream's answer.
public struct MessageError: Error, Sendable, Equatable {
    /// Status code of the answer to the client: 502 for an upstream's message.
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
