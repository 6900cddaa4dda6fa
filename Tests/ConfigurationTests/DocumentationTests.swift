import Configuration
import Foundation
import Testing

@Suite("The examples that we publish hold")
struct DocumentationTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static let environment = [
        "HEIMDALLR_PLAYGROUND_AUTH": "http://127.0.0.1:9001", "HEIMDALLR_PLAYGROUND_API": "127.0.0.1:9002",
        "HEIMDALLR_PLAYGROUND_CLIENT_ID": "a", "HEIMDALLR_PLAYGROUND_CLIENT_SECRET": "b", "REPORTS_SECRET": "c",
    ]

    private static func text(_ page: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent("docs/\(page).md"), encoding: .utf8)
    }

    private static func blocks(_ text: String) -> [String] {
        text.components(separatedBy: "```yaml\n").dropFirst().map { $0.components(separatedBy: "\n```")[0] }
    }

    @Test(
        "the configuration's pages: only the files, clients and programs that an example leaves out are missing",
        arguments: ["configuration", "clients", "upstreams"])
    func reference(_ page: String) throws {
        let blocks = Self.blocks(try Self.text(page))
        #expect(blocks.count >= 7)
        for block in blocks {
            let unexpected = problems(block, environment: Self.environment).filter {
                !$0.contains("there is no such file") && !$0.contains("there is no client")
                    && !$0.contains("there is no program")
            }
            #expect(unexpected == [], "\(block)")
        }
    }

    @Test("docs/providers.md: each configuration is whole and good, but for its files")
    func providers() throws {
        let sections = try Self.text("providers").components(separatedBy: "\n## ").dropFirst()
        #expect(sections.count >= 15)
        for section in sections {
            let name = section.prefix { $0 != "\n" }
            guard let block = Self.blocks(section).first else {
                Issue.record("\(name) has no configuration")
                continue
            }
            let unexpected = problems(block, environment: [:]).filter { !$0.contains("there is no such file") }
            #expect(unexpected == [], "\(name)")
            #expect(section.contains("| Symptom | Cause |"), "\(name) says what goes wrong")
        }
    }

    @Test("docs/recipes.md: the files for ten jobs are whole and good, but for the files that they name")
    func recipes() throws {
        let sections = try Self.text("recipes").components(separatedBy: "\n## ").dropFirst()
        #expect(sections.count >= 10)
        for section in sections {
            let name = section.prefix { $0 != "\n" }
            let blocks = Self.blocks(section)
            #expect(blocks.count == 1, "\(name) has one file")
            for block in blocks {
                let unexpected = problems(block, environment: [:]).filter { !$0.contains("there is no such file") }
                #expect(unexpected == [], "\(name)")
            }
        }
    }

    @Test("an editor marks no configuration in any of our pages and examples")
    func schema() throws {
        let tracked = FileManager.default.enumerator(atPath: Self.root.path)?.compactMap { $0 as? String } ?? []
        let files = tracked.filter {
            ($0.hasPrefix("docs/") || $0.hasPrefix("deploy/") || !$0.contains("/"))
                && ($0.hasSuffix(".md") || $0.hasSuffix(".yaml"))
        }
        var count = 0
        for file in files.sorted() {
            let text = try String(contentsOf: Self.root.appendingPathComponent(file), encoding: .utf8)
            let blocks = file.hasSuffix(".yaml") ? [text] : Self.blocks(text)
            // Other programs' files have other keys at the top.
            for block in blocks where block.contains(/(?m)^(upstreams|clients|proxy|admin|log|store|hooks|tls):/) {
                #expect(EditorSchema.problems(block) == [], "\(file): \(block)")
                count += 1
            }
        }
        #expect(count > 40)
    }

    @Test("the repository's config.yaml is good")
    func repository() throws {
        let file = Self.root.appendingPathComponent("config.yaml").path
        let (configuration, warnings) = try Configuration.load(file: file, environment: Self.environment)
        #expect(configuration.playground)
        #expect(warnings == [])
        #expect(Configuration.wantsPlayground(file: file))
    }
}
