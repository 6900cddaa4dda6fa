import Dispatch
import WireText

/// One request as the simplest of programs would send it: bytes over a connection of its own, nothing in common with
/// the proxy it talks to.
struct DemoRequest: Sendable {
    /// `127.0.0.1:PORT`.
    let connectTo: String
    /// A path, or a whole URL as one says it to a proxy (RFC 9112, section 3.2).
    let target: String
    let host: String

    func send() async throws(DemoError) -> DemoAnswer {
        // Blocks for as long as it takes, so not on a thread that tasks share.
        let result: Result<DemoAnswer, DemoError> = await withCheckedContinuation { continuation in
            DispatchQueue(label: "demo").async {
                do throws(DemoError) {
                    continuation.resume(returning: .success(try exchange()))
                } catch {
                    continuation.resume(returning: .failure(error))
                }
            }
        }
        return try result.get()
    }

    private func exchange() throws(DemoError) -> DemoAnswer {
        guard let port = connectTo.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw .noAddress(connectTo)
        }
        let connection = try LoopbackConnection(port: port, timeout: 10)
        let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        guard connection.send(request), let bytes = connection.receiveAll(limit: 1 << 20) else {
            throw .noAnswer(port: port)
        }
        guard let answer = DemoAnswer(bytes) else { throw .notHTTP(port: port) }
        return answer
    }
}

/// An answer, for people to read.
struct DemoAnswer: Sendable {
    let status: Int
    /// The status line, the fields that tell something, and the body; indented.
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

/// What can go wrong between the demo and its servers.
enum DemoError: Error, CustomStringConvertible {
    case noAddress(String)
    case noConnection(port: UInt16, errno: Int32)
    case noAnswer(port: UInt16)
    case notHTTP(port: UInt16)

    var description: String {
        switch self {
        case .noAddress(let address): "\(address) is not an address and port of this machine."
        case .noConnection(let port, let errno): "No connection to port \(port) of this machine (errno \(errno))."
        case .noAnswer(let port): "Port \(port) of this machine did not answer within 10 seconds."
        case .notHTTP(let port): "Port \(port) of this machine answered with something that is not HTTP."
        }
    }
}
