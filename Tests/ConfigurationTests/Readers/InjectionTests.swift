import Configuration
import Testing

@Suite("inject takes one entry or a list, and says what does not fit")
struct InjectionTests {
    private func upstream(_ text: String, environment: [String: String] = ["SECRET": "s3cr3t"]) throws
        -> UpstreamSettings
    {
        let yaml = """
            clients: {a: {token_endpoint: https://i.example/t, client_id: a}}
            upstreams:
              - {host: x.example, client: a}
              - {host: y.example, \(text)}
            """
        return try good(yaml, environment: environment).configuration.upstreams[1]
    }

    private let secret = SecretSource.environment(name: "SECRET")

    @Test func `an upstream may inject a token and a key at once`() throws {
        let read = try upstream(
            "client: a, inject: [{header: Authorization}, {header: X-Api-Key, value: {env: SECRET}}]")
        #expect(
            read.injections == [
                .header(name: "Authorization", scheme: "Bearer"),
                .header(name: "X-Api-Key", scheme: "", value: secret),
            ])
        #expect(read.injectionText == "Authorization: Bearer <token>, X-Api-Key: <secret>")
    }

    @Test func `a single injected entry needs neither a list nor a client`() throws {
        #expect(
            try upstream("inject: {header: Authorization, scheme: Token, value: \"${SECRET}\"}").injections
                == [.header(name: "Authorization", scheme: "Token", value: secret)])
        #expect(
            try upstream("inject: {query: key, value: {env: SECRET}}").injections == [
                .query(name: "key", value: secret)
            ]
        )
        #expect(
            try upstream("inject: {basic: {username: alice, password: {env: SECRET}}}").injections
                == [.basic(username: .literal("alice"), password: secret)])
        #expect(
            try upstream("inject: {basic: {username: {env: SECRET}}}").injections
                == [.basic(username: secret, password: nil)])
        #expect(
            try upstream("inject: {basic: {password: {env: SECRET}}}").injectionText == "Authorization: Basic <secret>")
    }

    @Test func `require_placeholder is read, and named beside the injected credential`() throws {
        let read = try upstream("client: a, require_placeholder: PUT-IT-HERE")
        #expect(read.placeholder == "PUT-IT-HERE")
        #expect(read.injectionText == "Authorization: Bearer <token>, in place of the placeholder")
    }

    @Test func `check names the kinds and places of injected credentials, never values`() throws {
        let yaml = "upstreams: [{host: a.example, inject: [{basic: {username: alice, password: {env: SECRET}}}]}]"
        let routes = try good(yaml).configuration.resolvedRoutes
        #expect(
            routes.map(\.description) == [
                "a.example:80,443  /…  *  -> https://a.example  no client  Authorization: Basic <secret>"
            ])
    }

    @Test(
        arguments: [
            "inject: []": "22: upstreams[1].inject: write one entry or a list of up to 8",
            "inject: {header: X}":
                "22: upstreams[1].inject: this injects a token: write `client` too, a `value` for a fixed key, or leave it out",
            "client: a, inject: [{header: X-Key, value: {env: SECRET}}]":
                "33: upstreams[1].inject: nothing injects the client's token: add {header: Authorization, scheme: Bearer}, or leave `client` out",
            "inject: {value: {env: SECRET}}":
                "30: upstreams[1].inject.value: nothing says where this value goes: write `header` or `query` too",
            "inject: [{header: X-Key, value: {env: SECRET}}, {header: x_key, value: {env: SECRET}}]":
                "62: upstreams[1].inject[1]: the field x_key is already set by upstreams[1].inject[0]: write another field, or leave one of them out",
            "inject: [{query: k, value: {env: SECRET}}, {query: k, value: {env: SECRET}}]":
                "57: upstreams[1].inject[1]: the parameter k is already set by upstreams[1].inject[0]: write another parameter, or leave one of them out",
            "client: a, inject: [{header: Authorization}, {basic: {username: u}}]":
                "59: upstreams[1].inject[1]: the field Authorization is already set by upstreams[1].inject[0]: write another field, or leave one of them out",
            "inject: [{sigv4: {region: r, service: s, access_key_id: a, secret_access_key: {env: SECRET}}}, {header: x_amz_date, value: {env: SECRET}}]":
                "99: upstreams[1].inject[1]: the field x_amz_date is already set by upstreams[1].inject[0]: write another field, or leave one of them out",
            "inject: {basic: {}}":
                "30: upstreams[1].inject.basic: write `username`, `password` or both",
            "inject: {basic: {username: \"a:b\"}}":
                "41: upstreams[1].inject.basic.username: the secret can't go onto a request: it holds a colon, which a user name can't have: remove it",
            "inject: {basic: {username: u}, header: X}":
                "53: upstreams[1].inject.header: `basic` already sets Authorization: leave this key or `basic` out",
            "inject: {header: X, query: y, value: {env: SECRET}}":
                "31: upstreams[1].inject.header: a key goes into a header or into the query, not both: leave this or `query` out",
            "inject: {header: X, value: {env: BROKEN}}":
                "41: upstreams[1].inject.value: the secret can't go onto a request: it has a line end inside, which is sent as part of the secret: write the secret on one line, and nothing else",
            "inject: {header: X, value: {env: SPACED}}":
                "41: upstreams[1].inject.value: the secret can't go onto a request: it begins or ends with a space: remove it",
            "inject: [{header: X, valu: {env: SECRET}}]":
                "35: unknown key \"valu\" in upstreams[1].inject[0]; did you mean \"value\"?",
            "inject: [5]": "23: upstreams[1].inject[0]: write a mapping of `key: value` lines, not a single value",
            "require_placeholder: X":
                "35: upstreams[1].require_placeholder: this applies to injected credentials: write `client` or `inject` too, or leave it out",
            "client: a, require_placeholder: \"a b\"":
                "46: upstreams[1].require_placeholder: write up to 256 visible ASCII characters without spaces and %, such as PLACEHOLDER, not \"a b\"",
            "on_existing: keep":
                "27: upstreams[1].on_existing: this applies to injected credentials: write `client` or `inject` too, or leave it out",
            "url: http://y.example, inject: {header: X, value: {env: SECRET}}":
                "19: upstreams[1].url: the secret would cross the network in plain text: write https://, or `allow_plaintext: true` if that is meant",
        ] as KeyValuePairs<String, String>)
    func `an injected entry that does not fit is refused`(text: String, message: String) {
        let yaml = """
            clients: {a: {token_endpoint: https://i.example/t, client_id: a}}
            upstreams: [{host: x.example, client: a},
             {host: y.example,
             \(text)}]
            """
        let environment = ["SECRET": "s3cr3t", "BROKEN": "se\ncret", "SPACED": " secret"]
        let found = problems(yaml, environment: environment)
        #expect(found.count(where: { !$0.contains("unknown key") || message.contains("unknown") }) >= 1, "\(found)")
        let wanted = message.split(separator: ": ", maxSplits: 1)[1]
        #expect(found.contains { $0.hasSuffix(": " + wanted) }, "\(found)")
        #expect(!found.joined().contains("cret\""))
    }

    @Test(arguments: [
        "Host", "content-length", "Connection", "Transfer_Encoding", "TE", "Upgrade", "Keep-Alive",
        "Proxy-Authorization",
        "Trailer", "Via", "Max-Forwards",
    ])
    func `a field that frames a message or ends at a hop can't be injected`(name: String) {
        let found = problems("upstreams: [{host: y.example, inject: {header: \(name), value: {env: SECRET}}}]")
        #expect(
            found == [
                "c.yaml:1:48: upstreams[0].inject.header: write a header that can carry a token, such as Authorization or X-Api-Key, not \"\(name)\""
            ])
    }

    @Test func `a file's value is judged without its line end, and never shown`() throws {
        let folder = try TemporaryFolder()
        let fine = try folder.write("fine", "key\r\n")
        let broken = try folder.write("broken", "one\ntwo\n")
        let yaml = "upstreams: [{host: y.example, inject: {header: X, value: {file: PATH}}}]"
        #expect(problems(yaml.replacing("PATH", with: fine)) == [])
        let found = problems(yaml.replacing("PATH", with: broken))
        #expect(found.count == 1 && found[0].contains("inject.value: the secret can't go onto a request"), "\(found)")
        #expect(!found.joined().contains("two"))
    }
}
