import Foundation
import TestSupport
import Testing

@Suite("check finds what a start refuses, in the same words", .timeLimit(.minutes(3)))
struct StartCheckTests {
    struct Case: Sendable {
        var name: String
        var yaml: String
        var sentence: String
        /// Run in the folder first.
        var prepare: @Sendable (TemporaryDirectory) throws -> Void = { _ in }
    }

    private static let key = String(repeating: "k", count: 32)
    private static func setMode(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }

    private static let longDomains = (0..<300).map {
        "\($0)." + Array(repeating: String(repeating: "a", count: 60), count: 2).joined(separator: ".")
    }.joined(separator: ", ")

    static let cases = [
        Case(
            name: "the store's folder is open to others",
            yaml: "store: {kind: file, directory: FOLDER/store, key: {file: FOLDER/key}}",
            sentence: "FOLDER/store is open to other users (mode 755): `chmod 700` it"
        ) { folder in
            try FileManager.default.createDirectory(
                atPath: folder.path(of: "store"), withIntermediateDirectories: false)
            try setMode(0o755, folder.path(of: "store"))
        },
        Case(
            name: "the store's folder is a file",
            yaml: "store: {kind: file, directory: FOLDER/key, key: {file: FOLDER/key}}",
            sentence: "FOLDER/key is not a directory"),
        Case(
            name: "the folder above the store is missing",
            yaml: "store: {kind: file, directory: FOLDER/none/store, key: {file: FOLDER/key}}",
            sentence: "can't make the directory FOLDER/none/store"),
        Case(
            name: "the audit file's folder is missing", yaml: "audit: {file: FOLDER/none/audit}",
            sentence: "audit.file: FOLDER/none/audit can't be opened"),
        Case(
            name: "the audit file is a folder", yaml: "audit: {file: FOLDER/store}",
            sentence: "audit.file: FOLDER/store can't be opened"
        ) { folder in
            try FileManager.default.createDirectory(
                atPath: folder.path(of: "store"), withIntermediateDirectories: false)
        },
        Case(
            name: "others may write to the audit file", yaml: "audit: {file: FOLDER/audit}",
            sentence: "audit.file: FOLDER/audit is not written to: its group or everybody may write to it"
        ) { folder in try setMode(0o666, try folder.write("", to: "audit")) },
        Case(
            name: "the folder above the intercepted hosts' authorities is missing",
            yaml: """
                interception: {directory: FOLDER/none/tls, key: {file: FOLDER/key}}
                upstreams: [{host: a.test, intercept: true}]
                """,
            sentence: "can't make the directory FOLDER/none/tls"),
        Case(
            name: "permitted domains that make a certificate too large",
            yaml: "interception: {permit: [\(longDomains)]}\nupstreams: [{host: a.test, intercept: true}]",
            sentence: "an authority takes 1 to 900 domains, 30,000 bytes in all"),
        Case(
            name: "a name to listen at that nobody knows",
            yaml: "proxy: {listen: \"no-such-host.invalid:0\", open: true}",
            sentence: "can't listen on no-such-host.invalid:0: "),
        Case(
            name: "an address that is not this machine's", yaml: "proxy: {listen: \"192.0.2.1:8080\", open: true}",
            sentence: "can't listen on 192.0.2.1:8080: this machine has no such address"),
        Case(
            name: "an upstream's own listener", yaml: "upstreams: [{host: a.test, listen: \"unix:FOLDER/none/s\"}]",
            sentence: "can't listen on unix:FOLDER/none/s: there is no such folder"),
        Case(
            name: "a Unix socket without a folder", yaml: "proxy: {listen: \"unix:FOLDER/none/socket\"}",
            sentence: "can't listen on unix:FOLDER/none/socket: there is no such folder"),
        Case(
            name: "a Unix socket where a file is", yaml: "proxy: {listen: \"unix:FOLDER/key\"}",
            sentence: "can't listen on unix:FOLDER/key: there is a file that is no socket"),
        Case(
            name: "a name of the administration that nobody knows",
            yaml: "admin: {listen: \"no-such-host.invalid:0\", token: {file: FOLDER/key}}",
            sentence: "can't listen on no-such-host.invalid:0 (admin.listen): "),
        Case(
            name: "an admin socket without a folder",
            yaml: "admin: {listen: \"127.0.0.1:0\", socket: FOLDER/none/socket}",
            sentence: "can't use the admin socket FOLDER/none/socket: "),
    ]

    @Test("check finds each fault that a start refuses, in the same words", arguments: cases.indices)
    func faults(index: Int) async throws {
        let one = Self.cases[index]
        let folder = try TemporaryDirectory()
        try Self.setMode(0o600, try folder.write(Self.key, to: "key"))
        try one.prepare(folder)
        let listen = one.yaml.contains("proxy:") ? "" : "proxy: {listen: \"127.0.0.1:0\"}\n"
        let upstreams = one.yaml.contains("upstreams:") ? "" : "upstreams: [{host: a.test}]\n"
        let file = try folder.write(
            (listen + upstreams + one.yaml).replacing("FOLDER", with: folder.path), to: "c.yaml")
        let before = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        let check = try await RunningProxy.run(["check", "--config", file])
        let sentence = one.sentence.replacing("FOLDER", with: folder.path)
        #expect(check.ending == .exited(78), "\(one.name): \(check.transcript)")
        let line = try #require(
            check.errors.split(separator: "\n").first { $0.contains(sentence) }, "\(one.name): \(check.transcript)")
        #expect(!line.contains("\(file): "), "each has its line: \(line)")
        let words = String(line.drop { $0 != " " }.dropFirst().drop { $0 != " " }.dropFirst())
        #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted() == before, "\(one.name)")
        let start = try await RunningProxy.run(["serve", "--config", file])
        // An address or a folder may come later, without a change of the configuration.
        let mayPass =
            sentence.contains("can't listen on") || sentence.contains("admin socket") || one.yaml.contains("/none/")
        #expect(start.ending == .exited(mayPass ? 1 : 78), "\(one.name): \(start.transcript)")
        #expect(start.errors.contains(words), "\(one.name): \(words)\n\(start.transcript)")
    }

    @Test func `a folder that a unit makes at its start is a warning while it is missing`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write(Self.key, to: "key")
        let name = "heimdallr-tests-\(UInt32.random(in: .min ... .max))"
        let file = try folder.write(
            """
            proxy: {listen: 127.0.0.1:0}
            admin: {listen: "127.0.0.1:0", socket: /run/\(name)/admin.sock}
            store: {kind: file, directory: /var/lib/\(name)/tokens, key: {file: \(folder.path)/key}}
            upstreams: []
            """, to: "config.yaml")
        let check = try await RunningProxy.run(["check", "--config", file])
        #expect(check.ending == .exited(0), "\(check.transcript)")
        #expect(
            check.errors.contains("warning: \(file):3:8: the token store: can't make the directory /var/lib/\(name)"))
        #expect(check.errors.contains("warning: \(file):2:8: can't use the admin socket /run/\(name)/admin.sock"))
    }

    @Test func `check misses no folder that a start makes, blames no one for a busy port, and makes nothing`()
        async throws
    {
        let folder = try TemporaryDirectory()
        try Self.setMode(0o600, try folder.write(Self.key, to: "key"))
        let busy = try RawListener()
        let file = try folder.write(
            """
            proxy: {listen: ["127.0.0.1:\(busy.port)", "unix:\(folder.path)/socket"]}
            admin: {listen: "127.0.0.1:0", socket: \(folder.path)/admin}
            store: {kind: file, directory: \(folder.path)/store, key: {file: \(folder.path)/key}}
            audit: {file: \(folder.path)/audit}
            upstreams: [{host: a.test}]
            """, to: "c.yaml")
        let before = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
        let check = try await RunningProxy.run(["check", "--config", file])
        #expect(check.ending == .exited(0), "\(check.transcript)")
        #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted() == before)
        withExtendedLifetime(busy) {}
    }
}
