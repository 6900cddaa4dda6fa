import Configuration
import Testing

@Suite("hooks")
struct HooksTests {
    @Test("a webhook and a command are taken as they are written")
    func good() throws {
        let (configuration, _) = try Configuration.parse(
            yaml: """
                hooks:
                  webhook: https://alerts.example.com/x?y=1
                  command: [/bin/sh, -c, "a b", "", -c]
                """, file: "c.yaml", environment: [:])
        #expect(configuration.hooks?.webhook == "https://alerts.example.com/x?y=1")
        #expect(configuration.hooks?.command == ["/bin/sh", "-c", "a b", "", "-c"])
        #expect(try Configuration.parse(yaml: "upstreams: []", file: "c", environment: [:]).configuration.hooks == nil)
    }

    @Test(
        "a hook that can't work is an error that says what to write",
        arguments: [
            ("hooks: {}", "write `webhook`, `command` or both"),
            ("hooks: {webhook: \"http://alerts.example.com/\"}", "allow_plaintext: true"),
            ("hooks: {webhook: \"https://user@alerts.example.com/\"}", "without a user name"),
            ("hooks: {webhook: \"ftp://alerts.example.com/\"}", "https://"),
            ("hooks: {webhook: \"https://alerts.example.com/#x\"}", "without a fragment"),
            ("hooks: {command: mail ops}", "write a list"), ("hooks: {command: []}", "write a list"),
            ("hooks: {command: [\"\"]}", "the name of a program"),
            ("hooks: {command: [bin/tell]}", "its absolute path"),
            ("hooks: {command: [/no/such/program]}", "that this process may run"),
            ("hooks: {webhok: x}", "webhook"),
        ])
    func bad(yaml: String, words: String) {
        do throws(ConfigurationError) {
            _ = try Configuration.parse(yaml: yaml, file: "c.yaml", environment: [:])
            Issue.record("\(yaml) passed")
        } catch {
            #expect(error.problems.contains { $0.description.contains(words) }, "\(error.problems)")
        }
    }

    @Test("an http webhook is taken where allow_plaintext says so")
    func plaintext() throws {
        let (configuration, _) = try Configuration.parse(
            yaml: "hooks: {webhook: \"http://127.0.0.1:9/\", allow_plaintext: true}", file: "c", environment: [:])
        #expect(configuration.hooks?.allowPlaintext == true)
    }
}
