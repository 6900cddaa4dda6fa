import Foundation
import Heimdallr
import TestSupport
import Testing

@Suite struct `The documentation's example` {
    @Test("the example in docs/library.md is the one that is compiled here")
    func sameText() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let source = try String(contentsOf: folder.appending(path: "LibraryExample.swift"), encoding: .utf8)
        let code = try #require(source.split(separator: "// begin\n").last?.split(separator: "// end").first)
        let page = try String(contentsOfFile: "\(Repository.root)/docs/library.md", encoding: .utf8)
        #expect(page.contains("```swift\n\(code)```\n"))
        #expect(code.split(separator: "\n", omittingEmptySubsequences: true).count <= 16)
    }

    @Test("the example asks its endpoint, and says what is missing when the secret is")
    func runs() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let error = await #expect(throws: HeimdallrError.self) {
            try await fetchInvoices(
                from: "http://127.0.0.1:1", tokenEndpoint: endpoint.url, http: LoopbackHTTPClient())
        }
        #expect(try #require(error).description.contains("/run/secrets/billing"))
    }
}
