public struct ServerResponse: Sendable {
    public enum Body: Sendable {
        case whole([UInt8])
        /// Pieces, each sent as it arrives. The next piece is requested when the program can take more. The end of the
        /// sequence ends the answer.
        case pieces(AsyncStream<[UInt8]>)
    }

    /// 200 to 599.
    public var status: Int
    /// Fields in order. The server adds framing and `Connection`, and leaves out fields with control characters.
    public var fields: [(name: String, value: String)]
    public var body: Body

    public init(status: Int, fields: [(name: String, value: String)] = [], body: Body = .whole([])) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    public init(status: Int, type: String, _ text: String) {
        self.init(status: status, fields: [("Content-Type", type)], body: .whole(Array(text.utf8)))
    }

    /// Returns an answer with a plain text for people.
    public static func plain(_ status: Int, _ text: String) -> ServerResponse {
        ServerResponse(status: status, type: "text/plain; charset=utf-8", text)
    }

    /// Replaces all fields of this name.
    public mutating func set(_ name: String, _ value: String) {
        let lowercased = name.lowercased()
        fields.removeAll { $0.name.lowercased() == lowercased }
        fields.append((name, value))
    }

    public mutating func append(_ name: String, _ value: String) { fields.append((name, value)) }

    public func value(_ name: String) -> String? {
        let lowercased = name.lowercased()
        return fields.first { $0.name.lowercased() == lowercased }?.value
    }
}
