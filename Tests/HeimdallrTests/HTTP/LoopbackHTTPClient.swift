import Heimdallr
import TestSupport

/// The plainest HTTP client that can talk to a `TokenEndpoint`: one connection for each request, over real sockets.
struct LoopbackHTTPClient: HeimdallrHTTPClient {
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let rest = request.url.dropFirst("http://127.0.0.1:".count)
        guard request.url.hasPrefix("http://127.0.0.1:"), let slash = rest.firstIndex(of: "/"),
            let port = UInt16(rest[..<slash])
        else { throw HeimdallrHTTPClientError.other }
        var head = "\(request.method) \(rest[slash...]) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n"
        for header in request.headers { head += "\(header.name): \(header.value)\r\n" }
        head += "Content-Length: \(request.body.count)\r\n\r\n"
        let client: RawClient
        do { client = try await RawClient.connect(port: port) } catch { throw HeimdallrHTTPClientError.connect }
        do {
            let bytes = Array(head.utf8) + request.body
            // The socket is shut on cancellation, which ends the read.
            return try await withTaskCancellationHandler {
                try await client.send(bytes)
                let response = try await client.response(to: request.method, within: request.timeout)
                client.close()
                return HeimdallrHTTPResponse(
                    status: response.status,
                    headers: response.fields.map { HeimdallrHTTPField(name: $0.name, value: $0.value) },
                    body: response.body)
            } onCancel: {
                client.close()
            }
        } catch let failure as TestFailure {
            throw failure.description.contains("in time") ? HeimdallrHTTPClientError.timeout : .cut
        } catch {
            throw HeimdallrHTTPClientError.cut
        }
    }
}

/// An HTTP client that is a closure, for tests that are not about the network.
struct ScriptedHTTPClient: HeimdallrHTTPClient {
    let body: @Sendable (HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse

    init(_ body: @escaping @Sendable (HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse) {
        self.body = body
    }

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse { try await body(request) }
}
