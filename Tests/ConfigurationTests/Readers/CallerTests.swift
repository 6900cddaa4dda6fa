import Configuration
import Testing

@Suite("Users and callers")
struct CallerTests {
    private let users =
        "proxy: {listen: [127.0.0.1:8080, unix:/run/h.sock], users: {alice: {env: SECRET}, bob: {env: SECRET}}}"

    private func upstreams(_ callers: String...) -> String {
        users + "\nupstreams:\n" + callers.map { "  - host: a.test\n    callers: \($0)\n" }.joined()
    }

    @Test("callers become values, and each way to tell them apart keeps rules from tying")
    func values() throws {
        let (configuration, _) = try good(
            upstreams(
                "{users: [alice], listeners: unix:/run/h.sock, uids: [0, 1000]}", "{users: bob}",
                "{users: [alice], listeners: [127.0.0.1:8080]}") + "  - host: a.test\n")
        #expect(configuration.proxy.users.keys.sorted() == ["alice", "bob"])
        #expect(
            configuration.upstreams.map(\.callers.description) == [
                "users alice; uids 0, 1000; listeners unix:/run/h.sock", "users bob",
                "users alice; listeners 127.0.0.1:8080", "",
            ])
        #expect(configuration.resolvedRoutes.count == 4)
        #expect(configuration.resolvedRoutes[3].callers.isEmpty)
    }

    @Test(
        "rules of callers that overlap tie",
        arguments: [
            ("{users: [alice, bob]}", "{users: [bob]}"), ("{users: [alice]}", "{uids: [0]}"),
            ("{users: [alice]}", "{users: [alice], uids: [0]}"),
        ])
    func ties(one: String, other: String) {
        let found = problems(upstreams(one, other))
        #expect(
            found.count == 1 && found[0].contains("make `host`, `paths`, `methods` or `callers` differ"), "\(found)")
    }

    @Test(
        "callers that do not exist or can't be told apart are refused with the remedy",
        arguments: [
            ("{users: [alise]}", "there is no user \"alise\" under `proxy.users`; did you mean \"alice\"?"),
            ("{listeners: [127.0.0.1:9]}", "127.0.0.1:9 is not one of `proxy.listen`"),
            ("{uids: [-1]}", "write a whole number from 0 to 4294967294"),
            ("{}", "write `users`, `uids`, `listeners` or `certificates`"),
            ("{certificates: [worker]}", "write a subject such as CN=worker,O=Example, or DNS:"),
            ("{certificates: [\"CN=worker\"]}", "`certificates` are known only at listeners with `client_ca_file`"),
            ("{users: []}", "an empty list admits nobody: write at least one"),
            ("{user: alice}", "unknown key \"user\""),
        ])
    func wrong(callers: String, message: String) {
        let found = problems(upstreams(callers))
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test("a rule for uids fits nobody without a Unix socket")
    func uids() {
        let found = problems("upstreams:\n  - host: a.test\n    callers: {uids: [0]}\n")
        #expect(found.count == 1 && found[0].contains("`uids` are known on Unix sockets only"), "\(found)")
    }

    @Test(
        "a rule for uids and one for TCP listeners have no caller in common",
        arguments: [
            ("{uids: [0]}", "{listeners: 127.0.0.1:8080}", true),
            ("{uids: [0]}", "{listeners: unix:/run/h.sock}", false),
            ("{uids: [0]}", "{listeners: [127.0.0.1:8080, unix:/run/h.sock]}", false),
        ])
    func uidsAndListeners(one: String, other: String, isGood: Bool) {
        #expect(problems(upstreams(one, other)).isEmpty == isGood)
    }

    @Test("a rule for uids on TCP listeners alone fits nobody")
    func uidsOnTCP() {
        let found = problems(upstreams("{uids: [0], listeners: [127.0.0.1:8080]}"))
        #expect(
            found.count == 1 && found[0].contains("to `listeners` and `proxy.listen`"), "\(found)")
        #expect(problems(upstreams("{uids: [0], listeners: [127.0.0.1:8080]}\n    listen: unix:/run/o.sock")).isEmpty)
    }

    @Test("with users, a listener may be reachable from elsewhere without `open`")
    func open() throws {
        _ = try good("proxy: {listen: 0.0.0.0:8080, users: {alice: {env: SECRET}}, unmatched: forward}")
    }

    @Test(
        "users are names with secrets",
        arguments: [
            ("[alice]", "proxy.users: write a mapping of names to secrets, not a list"),
            ("{\"a:b\": {env: SECRET}}", "write a name without colons and control characters, not \"a:b\""),
            ("{alice: {env: NONE}}", "the environment variable NONE is not set"),
            ("{alice: {file: /none}}", "can't read the secret file /none"),
        ])
    func wrongUsers(users: String, message: String) {
        let found = problems("proxy: {users: \(users)}")
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test("tokens of callers that are exchanged can't be kept or refused")
    func exchanged() throws {
        func text(_ more: String) -> String {
            """
            clients:
              a: {grant_type: token-exchange, token_endpoint: https://idp.example.com/t, client_id: a, subject_token: caller}
            upstreams: [{host: a.example.com, client: a\(more)}]
            """
        }
        let (configuration, warnings) = try good(text(", on_existing: replace"))
        #expect(configuration.clients[0].exchange?.subject == .caller)
        #expect(warnings == [])
        let found = problems(text(", require_placeholder: dummy-token"))
        #expect(found.count == 1 && found[0].contains("not a placeholder"), "\(found)")
        for word in ["keep", "reject"] {
            #expect(
                problems(text(", on_existing: \(word)")) == [
                    "c.yaml:3:43: upstreams[0].on_existing: the client a exchanges the program's own token "
                        + "(`subject_token: caller`), so it can't be kept or refused: leave `on_existing` out"
                ])
        }
    }
}
