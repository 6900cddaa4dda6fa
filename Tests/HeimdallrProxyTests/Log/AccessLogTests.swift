import Foundation
import Proxy
import Reactor
import Testing

@testable import HeimdallrProxy

@Suite struct AccessLogTests {
    private func record(_ change: (inout RequestRecord) -> Void = { _ in }) -> RequestRecord {
        var record = RequestRecord()
        record.startedAt = WallTime(seconds: 1_772_355_907, nanoseconds: 12_000_000)
        record.duration = .microseconds(12_034)
        record.method = Array("GET".utf8)
        record.host = Array("api.example.com:80".utf8)
        record.path = Array("/a".utf8)
        record.status = 200
        record.bytesReceived = .max
        record.upstream = "api.example.com"
        record.client = "billing"
        change(&record)
        return record
    }

    private func line(_ format: LogLine.Format, _ change: (inout RequestRecord) -> Void = { _ in }) -> String {
        String(decoding: AccessLog.line(record(change), format), as: UTF8.self)
    }

    private func object(_ change: (inout RequestRecord) -> Void = { _ in }) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line(.json, change).utf8)) as? [String: Any])
    }

    @Test func `a request is one line of text, of the moment when it was over`() {
        #expect(
            line(.text)
                == "2026-03-01T09:05:07.024Z info request method=GET host=api.example.com:80 path=/a status=200 "
                + "duration_ms=12.034 bytes_sent=0 bytes_received=18446744073709551615 upstream=api.example.com "
                + "client=billing\n")
        let unsigned = line(.text) {
            $0.upstream = nil
            $0.client = nil
        }
        #expect(unsigned.hasSuffix(" bytes_received=18446744073709551615\n"))
    }

    @Test func `a request is one JSON object`() throws {
        let object = try object {
            $0.path = Array("/a\"\\\n".utf8)
            $0.wasReplayed = true
        }
        #expect(object["replayed"] as? Bool == true)
        #expect(object["message"] as? String == "request")
        #expect(object["path"] as? String == "/a\"\\\n")
        #expect(object["status"] as? Int == 200)
        #expect(object["duration_ms"] as? Double == 12.034)
        #expect(object["client"] as? String == "billing")
        for name in ["token_wait_ms", "connect_ms", "first_byte_ms", "connection", "error"] {
            #expect(object[name] == nil)
        }
    }

    @Test func `a caller with a certificate has its name`() throws {
        #expect(
            line(.text) { $0.certificate = "CN=worker,O=Example" }.hasSuffix(" certificate=\"CN=worker,O=Example\"\n"))
        #expect(try object()["certificate"] == nil)
    }

    @Test func `a recorded request has its trace, as a traceparent field spells it`() {
        let trace = TraceID(high: 0x0AF7_6519_16CD_43DD, low: 0x8448_EB21_1C80_319C)
        #expect(line(.text) { $0.traceID = trace }.hasSuffix(" trace_id=0af7651916cd43dd8448eb211c80319c\n"))
        #expect(!line(.text).contains("trace_id"))
    }

    private static func slow(_ record: inout RequestRecord) {
        record.tokenWait = .milliseconds(3)
        record.connect = .microseconds(4_500)
        record.firstByte = .microseconds(1)
        record.isReused = false
        record.wasReplayed = true
        record.errorClass = "http_response_incomplete"
    }

    @Test func `the text of the access log says what took how long`() {
        let text = line(.text, Self.slow)
        #expect(
            text.contains(
                " duration_ms=12.034 token_wait_ms=3.000 connect_ms=4.500 first_byte_ms=0.001 connection=new"
                    + " replayed=true bytes_sent=0"))
        #expect(
            text.hasSuffix(
                " error=http_response_incomplete upstream=api.example.com client=billing\n"
            ))
        #expect(line(.text) { $0.isReused = true }.contains(" connection=reused "))
    }

    @Test(arguments: ["/a b", "/a=b", "/\n2026", "/\u{1B}[0m", "", "/\""])
    func `a path stays one field of the access log`(path: String) {
        let line = line(.text) { $0.path = Array(path.utf8) }
        #expect(line.split(separator: "\n").count == 1)
        #expect(line.contains(" path=\""))
        #expect(line.contains("\" status=200"))
    }

    @Test(arguments: ["a b", "a=b", "\n2026", "\u{1B}[0m", "\"", "\\"]) func `a name stays one field of the access log`(
        name: String
    ) throws {
        let line = line(.text) { $0.user = name }
        #expect(line.split(separator: "\n").count == 1)
        #expect(line.contains(" user=\"") && line.hasSuffix("\"\n"))
        #expect(try object { $0.user = name }["user"] as? String == name)
    }

    @Test func `a refusal says why, and by what name it is found`() {
        let line = line(.text) {
            $0.status = 403
            $0.bytesReceived = 2
            $0.upstream = nil
            $0.client = nil
            $0.reason = "not-covered"
            $0.errorClass = "http_request_denied"
            $0.address = SocketAddress(.ipv4(address: 0x7F00_0001, port: 5000))
            $0.requestID = Array("mine-1".utf8)
        }
        #expect(
            line.hasSuffix(
                "bytes_received=2 reason=not-covered error=http_request_denied peer=127.0.0.1:5000 request_id=mine-1\n"
            ))
    }
}
