import Foundation
import TestSupport
import Testing

@testable import Administration

@Suite("docs/errors.md explains the administration's problems, too", .timeLimit(.minutes(1)))
struct AdminProblemTests {
    @Test func `each word of the administration has its row with status, cause and remedy, and each row its word`()
        throws
    {
        let page = try String(contentsOfFile: "\(Repository.root)/docs/errors.md", encoding: .utf8)
        var words: Set<String> = []
        for row in page.matches(of: /\n\| `(admin-[a-z-]+)` \| (\d+) \| ([^|]+) \| ([^|]+) \|/) {
            let word = String(row.1)
            words.insert(word)
            #expect(AdminProblem(rawValue: word)?.status == Int(row.2), "\(word)")
        }
        #expect(words == Set(AdminProblem.allCases.map(\.rawValue)))
    }

    @Test func `a browser gets a page where there is nothing, a program a sentence`() async throws {
        let admin = try await AdministeredProxy()
        let page = try await admin.send("GET", "/nothing", [("Accept", "text/html,*/*;q=0.8")])
        #expect(page.status == 404 && page.field("Heimdallr-Problem") == AdminProblem.nothingHere.type)
        #expect(page.field("Content-Type")?.hasPrefix("text/html") == true)
        #expect(page.text.contains("<main") && page.text.contains("There is nothing here"))
        let plain = try await admin.send("GET", "/nothing", [("Accept", "*/*")])
        #expect(plain.text == "There is nothing here.\n")
    }

    @Test func `answers say which problem it is, and are documents for who wants one`() async throws {
        let admin = try await AdministeredProxy(admin: "token: {file: FOLDER/admin-token}")
        let wanted = [("Accept", "application/problem+json")]
        let good = [("Authorization", "Bearer \(adminToken)")]
        let cases: [(path: String, host: String, fields: [(String, String)], problem: AdminProblem)] = [
            ("/status", "evil.example", [], .foreignHost),
            ("/status", "localhost", [("Origin", "http://evil.example")], .foreignPage),
            ("/status", "localhost", [], .tokenNeeded), ("/nothing", "localhost", good, .nothingHere),
        ]
        for (path, host, fields, problem) in cases {
            let plain = try await admin.send("GET", path, fields, host: host)
            #expect(plain.status == problem.status)
            #expect(plain.field("Heimdallr-Problem") == problem.type, "\(path)")
            #expect(plain.field("Content-Type") == "text/plain; charset=utf-8")
            let json = try await admin.send("GET", path, fields + wanted, host: host)
            #expect(json.field("Content-Type") == "application/problem+json")
            let object = try JSONSerialization.jsonObject(with: Data(json.body)) as? [String: Any]
            #expect(object?["type"] as? String == problem.type)
            #expect(object?["status"] as? Int == problem.status)
            #expect(
                object?["detail"] as? String
                    == plain.text.trimmingCharacters(in: .whitespacesAndNewlines)
                    .replacingOccurrences(of: "\n", with: " "))
        }
    }
}
