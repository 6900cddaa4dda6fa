import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("what the process takes of the machine", .timeLimit(.minutes(1)))
struct ProcessUsageTests {
    @Test func `a name with spaces and brackets is no field`() {
        let usage = ProcessUsage(
            stat:
                "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 7 3 0 0 20 0 9 0 123456 8192000 500 18446744073709551615\n",
            pageSize: 4096)
        #expect(usage.threads == 9)
        #expect(usage.virtualBytes == 8_192_000)
        #expect(usage.residentBytes == 500 * 4096)
    }

    @Test(arguments: ["", "42", "42 (x)", "42 (x) S 1 2", "42 (x) " + String(repeating: "z ", count: 60)])
    func `what can't be read is left out`(stat: String) {
        #expect(ProcessUsage(stat: stat, pageSize: 4096) == ProcessUsage(stat: "", pageSize: 4096))
        #expect(ProcessUsage(stat: stat, pageSize: 4096).residentBytes == nil)
    }

    @Test(.enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
    func `a running proxy says what proc says of it`() async throws {
        let before = Date().timeIntervalSince1970
        let admin = try await AdministeredProxy()
        try await admin.ready()
        let pid = admin.proxy.process.pid
        let idle: [RawClient] = try await {
            var clients: [RawClient] = []
            for _ in 0..<20 { clients.append(try await RawClient.connect(port: admin.proxy.port)) }
            return clients
        }()
        let page = try await eventually("twenty clients") {
            let page = PrometheusReader(try await admin.get("/metrics").text)
            return page.value("heimdallr_client_connections_open") == 20 ? page : nil
        }
        #expect(page.problems == [])
        #expect(page.value("heimdallr_client_connections_limit") ?? 0 > 100)
        let resident = try #require(page.value("process_resident_memory_bytes"))
        #expect(abs(resident / Double(try admin.proxy.process.residentMemory()) - 1) < 0.5)
        #expect(page.value("process_virtual_memory_bytes") ?? 0 > resident)
        #expect(page.value("process_cpu_seconds_total") ?? 0 > 0)
        #expect(page.value("process_threads") == Double(try threads(of: pid).count))
        let start = try #require(page.value("process_start_time_seconds"))
        #expect(start > before - 1.5 && start < Date().timeIntervalSince1970)
        let limits = try String(contentsOfFile: "/proc/\(pid)/limits", encoding: .utf8)
        let limit = limits.firstMatch(of: /Max open files +([0-9]+)/).flatMap { Double($0.1) }
        #expect(page.value("process_max_fds") == limit)
        let open = try #require(page.value("process_open_fds"))
        let seen = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count
        #expect(open >= 20 && abs(open - Double(seen)) < 5)
        #expect(page.samples.keys.contains { $0.name == "heimdallr_build_info" && $0.labels["version"] != nil })
        for loop in ["loop 0", "admin"] {
            #expect(page.value("heimdallr_loop_lag_seconds_count", ["loop": loop]) != nil, "\(loop)")
        }
        for client in idle { client.close() }
        try await eventually("no client") {
            PrometheusReader(try await admin.get("/metrics").text).value("heimdallr_client_connections_open") == 0
        }
    }
}
