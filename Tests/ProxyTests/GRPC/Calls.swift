import Proxy
import TestSupport

/// A gRPC call over HTTP/1.1, with the bytes of one message.
func call(_ url: String = "http://api.test/service/Method", type: String = "application/grpc") -> String {
    message("POST", url, fields: ["Content-Type: \(type)", "TE: trailers"], body: "\0\0\0\0\u{3}abc")
}

extension OriginExchange {
    static let messageOfGRPC = "\0\0\0\0\u{2}ok"

    /// A status alone ("Trailers-Only"), in the head.
    func status(_ code: Int, fields: [(String, String)] = []) throws {
        try respond(fields: [("Content-Type", "application/grpc"), ("grpc-status", String(code))] + fields)
    }

    /// The answer with its status in the trailers.
    func answer(_ messages: [String] = [messageOfGRPC], status: Int) throws {
        try readBody()
        let chunks = messages.map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" }.joined()
        // A server writes all of a short answer at once.
        try send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)"
                + "0\r\ngrpc-status: \(status)\r\ngrpc-message: said%20so\r\n\r\n")
    }
}
