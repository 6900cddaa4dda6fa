import HTTPMessage
import Testing

@Suite("Challenges")
struct ChallengeTests {
    private func parse(_ values: String...) -> [Challenge]? { Challenge.parse(values.map(wire)) }

    private func challenge(_ scheme: String, _ parameters: (String, String)..., token68: String? = nil) -> Challenge {
        Challenge(
            scheme: scheme, parameters: parameters.map { Challenge.Parameter(name: $0.0, value: $0.1) },
            token68: token68)
    }

    @Test("challenges are read by the grammar of RFC 9110 11.6.1")
    func grammar() {
        #expect(parse() == [])
        #expect(parse("") == [])
        #expect(parse(" , ,") == [])
        #expect(parse("Bearer") == [challenge("bearer")])
        #expect(parse("Bearer ") == [challenge("bearer")])
        #expect(parse("bearer realm=\"a, b=\\\"c\\\"\"") == [challenge("bearer", ("realm", "a, b=\"c\""))])
        #expect(
            parse("Bearer realm=a,ERROR = invalid_token") == [
                challenge("bearer", ("realm", "a"), ("error", "invalid_token"))
            ])
        #expect(parse("Negotiate YII=") == [challenge("negotiate", token68: "YII=")])
        #expect(parse("NTLM, Negotiate") == [challenge("ntlm"), challenge("negotiate")])
        #expect(
            parse("Basic realm=\"x\", Bearer, Digest a=b,c=d") == [
                challenge("basic", ("realm", "x")), challenge("bearer"), challenge("digest", ("a", "b"), ("c", "d")),
            ])
        #expect(
            parse("Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\"") == [
                challenge("newauth", ("realm", "apps"), ("type", "1"), ("title", "Login to \"apps\"")),
                challenge("basic", ("realm", "simple")),
            ])
        #expect(
            parse("Basic realm=\"\"", "Bearer error=\"x\"") == [
                challenge("basic", ("realm", "")), challenge("bearer", ("error", "x")),
            ])
        #expect(parse("a b==, c d=e") == [challenge("a", token68: "b=="), challenge("c", ("d", "e"))])
        #expect(parse("Bearer   realm=\"x\" ,, scope=\"a b\"")?.first?.value(of: "scope") == "a b")
        #expect(parse("Bearer realm=\"Bearer error=\\\"invalid_token\\\"\"")?.first?.value(of: "error") == nil)
    }

    @Test(
        "a malformed challenge is ignored",
        arguments: [
            "realm=\"x\"", "=", "Bearer realm=\"x", "Bearer realm=\"x\\", "Bearer realm=\"x\"y",
            "Bearer error=\"x\" error_description=\"y\"",
            "Bearer realm=\"x\" scope=y", "Bearer a=b, a=c", "Bearer a=b, A=c", "Bearer a b", "Negotiate a==, b=c",
            "Bearer (x)", "\"Bearer\"", "Bearer a=\"\u{1}\"", "Bearer a=\"\r\n\"", "Bearer\0", "Bearer a=, b=c d",
            "B@d realm=x",
            "Bearer a=\"b\";c=d", "Bearer\trealm=x y",
        ])
    func malformed(value: String) {
        #expect(parse(value) == nil)
    }

    @Test(
        "a 401 blames the token, unless a challenge that can be read says something else",
        arguments: [
            ([], true), ([""], true), (["Bearer"], true), (["bearer error=invalid_token"], true), (["Token"], true),
            (["Bearer authorization_uri=https://login.example/t/authorize, resource_id=https://org.example/"], true),
            ([#"OAuth "Facebook Platform" "invalid_token" "Session has expired""#], true),
            ([#"Bearer realm="api", error="expired_token""#], true), ([#"Bearer realm="x" error="x""#], true),
            (["Basic realm=x y"], true), (["Token, Basic realm=x"], true), ([#"Bearer a="b"#], true), (["\"\""], true),
            (["Basic realm=x"], false), (["Negotiate", "NTLM"], false), (["Digest a=b, c=d"], false),
            ([#"Bearer error="insufficient_scope""#], false), ([#"Bearer error="invalid_request", a=b:c"#], false),
            ([#"DPoP error="use_dpop_nonce""#], false), (["Bearer error=insufficient_user_authentication"], false),
        ] as [([String], Bool)])
    func blame(values: [String], isTokens: Bool) {
        #expect(Challenge.rejectsToken(values.map(wire)) == isTokens)
    }

    @Test("of a broken challenge the parts that can be read count, and none that comes twice")
    func parts() {
        func read(_ values: String...) -> [Challenge] { Challenge.readable(values.map(wire)).challenges }
        let address = "https://mcp.example/.well-known/oauth-protected-resource"
        let broken = #"Bearer realm="a", realm="b", error=invalid token, resource_metadata="\#(address)""#
        #expect(read(broken).first?.value(of: "resource_metadata") == address)
        #expect(read(broken).first?.value(of: "realm") == nil)
        #expect(read("Bearer resource_metadata=\(address)").first?.value(of: "resource_metadata") == address)
        #expect(read("Bearer resource_metadata=a:b, resource_metadata=c:d").first?.parameters == [])
        #expect(read("Bearer a=b c=d").first?.value(of: "c") == "d")
        #expect(!Challenge.readable([wire(broken)]).isWhole)
        #expect(Challenge.readable([wire("Bearer a=b")]).isWhole)
        // Quotes and backslashes without an end take one look at each byte.
        _ = read("Bearer a=" + String(repeating: "\"\\", count: 4000))
    }

    @Test("a challenge of more than 8 KiB is ignored")
    func bounded() {
        #expect(parse("Bearer realm=\"" + String(repeating: "x", count: 9000) + "\"") == nil)
    }
}
