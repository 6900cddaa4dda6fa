import Foundation
import TestSupport
import Testing

@Suite("config schema prints what editors and pipelines check a configuration with", .timeLimit(.minutes(1)))
struct ConfigSchemaTests {
    private func check(_ arguments: [String]) async throws -> ChildProcess {
        try await ChildProcess.run([try Repository.python("check-jsonschema")] + arguments)
    }

    @Test func `config schema prints a schema that takes the repository's configuration and marks a typo`() async throws
    {
        let folder = try TemporaryDirectory()
        let run = try await RunningProxy.run(["config", "schema"])
        #expect(run.ending == .exited(0))
        #expect(run.output.contains("\"$schema\": \"https://json-schema.org/draft/2020-12/schema\""))
        #expect(run.output.contains("\"$id\": \"urn:heimdallr-proxy:"))
        try run.output.write(toFile: folder.path(of: "schema.json"), atomically: true, encoding: .utf8)
        let whole = try await check(["--check-metaschema", folder.path(of: "schema.json")])
        #expect(whole.ending == .exited(0), "\(whole.transcript)")

        let schema = ["--schemafile", folder.path(of: "schema.json")]
        let good = try await check(schema + [Repository.root + "/config.yaml"])
        #expect(good.ending == .exited(0), "\(good.transcript)")
        try "upstreams: [{host: api.example.com, cleint: a}]\n"
            .write(toFile: folder.path(of: "bad.yaml"), atomically: true, encoding: .utf8)
        let bad = try await check(schema + [folder.path(of: "bad.yaml")])
        #expect(bad.ending == .exited(1))
        #expect(bad.transcript.contains("cleint"), "\(bad.transcript)")
    }

    @Test func `config alone says what subcommands there are`() async throws {
        let run = try await RunningProxy.run(["config"])
        #expect((run.output + run.errors).contains("Print a JSON Schema"))
    }
}
