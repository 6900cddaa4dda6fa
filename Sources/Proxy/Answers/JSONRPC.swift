import HTTPMessage
import HTTPServer
import WireText

/// Recognizes JSON-RPC 2.0 requests, such as those of MCP. Their programs show nothing of a refusal but a JSON-RPC
/// error. The HTTP status stays: MCP requires that of an error (Streamable HTTP, "Sending Messages to the Server"), and
/// 401, 407 and 503 have a meaning for the libraries below.
enum JSONRPC {
    /// Code of the proxy's errors, in the range for servers (JSON-RPC 2.0, section 5.1).
    static let errorCode = -32_000

    /// Longest body that is read for its `id`.
    private static let maxBody = 16 * 1024

    /// Returns the `id` of a refused request. Reads a short body that has arrived; no body is waited for.
    /// - Returns: `null` for a batch or a notification, and for an MCP request whose body is not here; `nil` for requests
    ///   that are no JSON-RPC.
    static func requestID(_ stream: any ProgramStream) -> JSON? {
        let (isPost, isMCP) = stream.request.with { head, bytes in (Self.isPost(head, bytes), Self.isMCP(head, bytes)) }
        guard isPost else { return nil }
        guard let body = stream.wholeBody(upTo: maxBody), let value = try? JSONParser.parse(body) else {
            return isMCP ? .null : nil
        }
        if case .array(let requests) = value { return requests.contains { isRequest($0) } ? .null : nil }
        guard isRequest(value) else { return nil }
        return switch value["id"] {
        case .string(let id): .string(id)
        case .number(let id): .literal(id)
        default: .null
        }
    }

    private static func isRequest(_ value: JSONValue) -> Bool {
        value["jsonrpc"]?.string == "2.0" && value["method"]?.string != nil
    }

    /// Whether the request is a POST of `application/json` or `application/json-rpc`, alone or with parameters.
    private static func isPost(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty, head.methodKind == .post, let index = head.index(of: .contentType) else { return false }
        let value = bytes[head.fields[index].value]
        let type = value.text.prefix { $0 != ";" && $0 != " " && $0 != "\t" }.lowercased()
        return type == "application/json" || type == "application/json-rpc"
    }

    /// Whether the head is that of MCP's transport: it has a field such as `Mcp-Session-Id`, or accepts both forms of
    /// answers that all MCP requests accept.
    private static func isMCP(_ head: borrowing RequestHead, _ bytes: Span<UInt8>) -> Bool {
        head.fields.contains { field in
            let name = bytes[field.name]
            if name.count > prefix.count, name.extracting(first: prefix.count).equalsIgnoringCase(prefix) {
                return true
            }
            guard name.equalsIgnoringCase(accept) else { return false }
            let types = bytes[field.value].text.lowercased()
            return types.contains("application/json") && types.contains("text/event-stream")
        }
    }

    private static let prefix = Array("mcp-".utf8)
    private static let accept = Array("accept".utf8)
}
