import Configuration
import HTTPMessage
import Reports
import Testing

@testable import Proxy

@Suite("a refusal names the nearest rule, and what of the request does not fit it")
struct RuleMissTests {
    private static let settings = """
        proxy: {users: {ann: "password-of-ann"}}
        upstreams:
          - {host: api.example.com, paths: [/v1, /health], methods: [GET, HEAD]}
          - {host: api.example.com, paths: [/v1/admin], callers: {users: [ann]}}
          - host: tenants.example.com
            fields: {X-Tenant: [a, "b*"], X-Api-Key: [k1]}
          - {host: own.example.com, paths: [/v1], callers: {users: [ann]}}
        """

    /// - Parameter caller: `nil` for the operator's command `why`.
    private func refusal(_ lines: String..., caller: Caller? = Caller()) throws -> Problem {
        let (configuration, _) = try Configuration.parse(yaml: Self.settings, file: "test.yaml", environment: [:])
        var gate = Gate(
            configuration, routes: RouteTable(configuration.upstreams), placeholders: PlaceholderGuard(configuration))
        let bytes = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
        var head = RequestHead()
        _ = try head.parse(bytes.span, limits: HeadLimits(maxBytes: 65536, maxFields: 256))
        let situation = Gate.Situation(
            role: .forward(.tcp(host: "127.0.0.1", port: 8080)), isOperator: caller == nil)
        var admitted = Admitted()
        if let caller { admitted.caller = caller }
        do throws(Problem) {
            _ = try gate.admit(head, bytes.span, situation, &admitted)
        } catch {
            return error
        }
        throw NoRefusal()
    }

    private struct NoRefusal: Error {}

    @Test func `a refusal of a path names the paths of the rule whose path begins most like it`() throws {
        let problem = try refusal("GET http://api.example.com/v2/items?token=abc HTTP/1.1", "Host: api.example.com")
        #expect(problem.row.word == "not-covered" && problem.status == 403)
        #expect(problem.phrase == "Add /v2/items to the upstream's paths")
        #expect(problem.detail.contains("the path /v2/items. The nearest, upstreams[0], has the `paths` /v1, /health."))
        #expect(!problem.message.contains("abc"), "the query may hold a secret")
    }

    @Test func `a refusal of a method names the rule that has the path, and its methods`() throws {
        let problem = try refusal("DELETE http://api.example.com/v1/x HTTP/1.1", "Host: api.example.com")
        #expect(problem.phrase == "Add DELETE to the upstream's methods")
        #expect(
            problem.detail.contains(
                "DELETE for the path /v1/x. The nearest, upstreams[0], has the `methods` GET, HEAD."))
    }

    @Test(arguments: [
        (["X-Tenant: c", "X-Api-Key: k1"], "x-tenant: the request has the value `c`."),
        (["X-Api-Key: k1"], "x-tenant: the request has none."),
        (["X-Tenant: a", "X-Tenant: a", "X-Api-Key: k1"], "x-tenant: the request has it twice, as a hop-by-hop field"),
        (
            ["X_Tenant: a", "X-Api-Key: k1"],
            "x-tenant: the request has it twice, as a hop-by-hop field, or under a name"
        ),
        (["X-Tenant: bx", "X-Api-Key: geheim"], "x-api-key: the request has another value."),
    ])
    func `a refusal of a field names its value, unless that may be a secret`(fields: [String], words: String) throws {
        let head = ["GET http://tenants.example.com/ HTTP/1.1", "Host: tenants.example.com"] + fields
        let problem = try refusal(head.joined(separator: "\r\n"))
        #expect(problem.condition == .fieldNotCovered && problem.detail.contains("upstreams[2]"))
        #expect(problem.detail.contains(words), "\(problem.detail)")
        #expect(!problem.message.contains("geheim") && !problem.message.contains("k1"))
    }

    @Test func `rules of other callers are named to the operator only`() throws {
        let line = "GET http://own.example.com/v2 HTTP/1.1"
        #expect(try refusal(line, "Host: own.example.com").condition == .notCovered)
        #expect(try refusal(line, "Host: own.example.com", caller: nil).detail.contains("upstreams[3]"))
    }

    @Test func `a refusal of a long path is short`() throws {
        let path = "/v2/" + String(repeating: "a", count: 300)
        let problem = try refusal("GET http://api.example.com\(path) HTTP/1.1", "Host: api.example.com")
        #expect(problem.phrase == "Add this path to the upstream's paths")
        #expect(problem.detail.utf8.count < 400)
    }

    @Test func `why takes the fields of a request`() throws {
        let (configuration, _) = try Configuration.parse(yaml: Self.settings, file: "test.yaml", environment: [:])
        let url = "http://tenants.example.com/"
        let refused = RouteExplanation(configuration, method: "GET", url: url, fields: ["X-Tenant: a"])
        guard case .refused(403, "not-covered", let detail) = refused else { throw NoRefusal() }
        #expect(detail.contains("upstreams[2], fits its path and method, but not the field x-api-key"))
        let found = RouteExplanation(configuration, method: "GET", url: url, fields: ["X-Tenant: a", "X-Api-Key: k1"])
        guard case .upstream(let route) = found else { throw NoRefusal() }
        #expect(route.index == 2)
    }
}
