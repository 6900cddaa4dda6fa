import WireText

/// One request of a simple program: bytes over a connection, without any code of the proxy.
struct DemoRequest: Sendable {
    /// `127.0.0.1:PORT`.
    let connectTo: String
    /// A path, or for a proxy a whole URL (RFC 9112, section 3.2).
    let target: String
    let host: String

    func send() async throws -> DemoAnswer {
        try await BlockingWork.run { Result { try exchange() } }.get()
    }

    private func exchange() throws(DemoError) -> DemoAnswer {
        guard let port = connectTo.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw DemoError("\(connectTo) is not an address and port of this machine")
        }
        let peer = "port \(port) of this machine"
        let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        let connection: SocketConnection
        do throws(SystemCallError) {
            connection = try SocketConnection(host: "127.0.0.1", port: port, timeout: 10)
        } catch {
            throw DemoError("no connection to \(peer) (errno \(error.number))")
        }
        guard connection.send(Array(request.utf8)),
            let bytes = connection.receiveAll(limit: 1 << 20, within: .seconds(10))
        else { throw DemoError("\(peer) did not answer within 10 seconds") }
        guard let answer = DemoAnswer(bytes) else {
            throw DemoError("\(peer) answered with something that is not HTTP")
        }
        return answer
    }
}

struct DemoAnswer: Sendable {
    let status: Int
    /// The status line, the fields that matter here, and the body; indented.
    let shown: String

    init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        self.status = status
        let telling = ["www-authenticate:", "proxy-status:", "content-type:"]
        var shown = lines.prefix(1).map(String.init)
        shown += lines.dropFirst().filter { line in telling.contains { line.lowercased().hasPrefix($0) } }.map(
            String.init)
        shown.append("")
        shown += text[end.upperBound...].split(separator: "\n").map(String.init)
        self.shown = shown.map { $0.isEmpty ? "\n" : "     \(ForeignText.printable($0, most: 1000))\n" }.joined()
    }
}

/// A fault between the demo and its servers.
struct DemoError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
