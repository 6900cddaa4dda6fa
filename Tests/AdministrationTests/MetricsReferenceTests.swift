import Foundation
import TestSupport
import Testing

@Suite("docs/metrics.md has every metric, and no other", .timeLimit(.minutes(1)))
struct MetricsReferenceTests {
    /// Names of metrics that stand in the sources.
    private static func inSources() throws -> Set<String> {
        let folder = "\(Repository.root)/Sources"
        let files = try #require(FileManager.default.enumerator(atPath: folder))
        var names: Set<String> = []
        for case let file as String in files where file.hasSuffix(".swift") {
            let text = try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
            for match in text.matches(of: /"((?:heimdallr|process)_[a-z_]+)"/) { names.insert(String(match.1)) }
        }
        return names
    }

    @Test func `each metric in the sources has its row, and each row its metric`() throws {
        let rows = try MetricsReference().rows
        let documented = rows.map(\.name)
        #expect(Set(documented).count == documented.count, "a row comes twice")
        let exported = try Self.inSources()
        #expect(exported.count > 20)
        #expect(exported.subtracting(documented).sorted() == [], "without a row in docs/metrics.md")
        #expect(Set(documented).subtracting(exported).sorted() == [], "rows of docs/metrics.md without a metric")
    }

    @Test func `each row says what it is and has a query with it`() throws {
        for row in try MetricsReference().rows {
            #expect(["counter", "gauge", "histogram"].contains(row.type), "\(row.name)")
            #expect(row.type == "counter" || !row.name.hasSuffix("_total"), "\(row.name)")
            #expect(row.meaning.count > 5, "\(row.name)")
            #expect(row.query.contains(row.name), "\(row.name)")
        }
    }

    @Test func `what a running proxy says has those types and those labels`() async throws {
        let rows = try MetricsReference().rows
        let nginx = try await Nginx.secure()
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken)]),
            more: """
                  - host: secure.test
                    url: https://localhost:\(nginx.httpsPort)
                    tls: {ca_file: \(nginx.authority.certificateFile)}
                """)
        try await admin.ready()
        for host in ["api", "secure", "unknown"] { _ = try await admin.proxy.get("http://\(host).test/") }
        let page = PrometheusReader(try await admin.get("/metrics").text)
        #expect(page.problems == [])
        for (name, type) in page.types {
            let row = try #require(rows.first { $0.name == name }, "\(name) has no row")
            #expect(row.type == type, "\(name)")
            let parts = type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
            for sample in page.samples.keys where parts.contains(where: { sample.name == name + $0 }) {
                #expect(Set(sample.labels.keys).subtracting(["le"]) == row.labels, "\(name)")
            }
        }
    }
}
