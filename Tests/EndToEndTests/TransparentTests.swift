import Foundation
import TestSupport
import Testing

@Suite("programs that know nothing of a proxy, behind deploy/transparent", .timeLimit(.minutes(3)))
struct TransparentTests {
    /// Whether this machine has network namespaces with address translation.
    private static let obstacle: String? = {
        guard geteuid() == 0 else { return "network namespaces need root" }
        let script = "ip link set lo up && nft add table inet t && ip link add cable0 type veth peer name cable1"
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = ["--net", "--mount", "sh", "-c", script]
        probe.standardError = FileHandle.nullDevice
        guard (try? probe.run()) != nil else { return "there is no unshare" }
        probe.waitUntilExit()
        return probe.terminationStatus == 0 ? nil : "this kernel has no nftables or virtual cables for a namespace"
    }()

    private struct Results: Decodable {
        struct Seen: Decodable, Equatable {
            var host: String
            var path: String
            var token: String?
            var via: String?
            var body: String
        }
        struct Answer: Decodable {
            var status: Int
            var answer: Seen
        }
        struct Refusal: Decodable {
            struct Problem: Decodable { var title: String }
            var status: Int
            var answer: Problem
        }
        var plain: Plain
        var root: Answer
        var ownService: Answer
        var marked: Seen
        var circle: Refusal
        var down: Answer
        var bad: [Int]
        var exit: Int
        var outside: [Seen]
        /// What datagrams come to, those of HTTP/3 among them.
        var udp: [String]
        var udpDown: String
        var tls: Secure
        /// The same cases with enclosed programs, which no rule redirects; `nil` where namespaces are refused.
        var enclosed: Enclosed?

        struct Enclosed: Decodable {
            var plain: Plain
            var tls: Secure
        }
        /// Programs that say http.
        struct Plain: Decodable {
            var program: Answer
            var elsewhere: Seen
            var unknown: Refusal
            var six: Answer?
        }
        /// Programs that say https.
        struct Secure: Decodable {
            struct Curl: Decodable, Equatable {
                var exit: Int
                var seen: Seen?
            }
            var python: Seen
            var curl: Curl
            var h2: Seen
            var six: Curl?
            var bytes: Seen
            var records: Seen
            var tunnel: Curl
            var elsewhere: Curl
            var unlisted: Curl
            var listed: Curl
            var nameless: Curl
            var any: Curl
            var ghost: Curl
            var anySix: Curl?
            /// Of redirected programs only.
            var circle: Curl?

            enum CodingKeys: String, CodingKey {
                case python, curl, h2, six, bytes, records, tunnel, elsewhere, unlisted, listed, nameless, any, ghost,
                    circle
                case anySix = "any six"
            }
        }

        enum CodingKeys: String, CodingKey {
            case plain, root, marked, circle, down, bad, exit, outside, udp, tls, enclosed
            case ownService = "own service"
            case udpDown = "udp down"
        }
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"), arguments: ["nft", "iptables"])
    func `requests of redirected and enclosed programs get tokens, and the proxy's own pass`(
        tool: String
    ) async throws {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3",
                "\(Repository.root)/Tests/EndToEndTests/Fixtures/transparent.py", try Repository.executable(),
                "\(Repository.root)/deploy/transparent/redirect", tool, folder.path,
            ], within: .seconds(150))
        let results = try JSONDecoder().decode(Results.self, from: Data(output.utf8))

        #expect(results.root.answer.token == "Bearer outside-token")
        #expect(results.ownService.answer.path == "/own")
        #expect(results.ownService.answer.via == nil)
        #expect(results.marked.path == "/marked")
        #expect(results.marked.via == nil)
        #expect(results.circle.status == 508)
        // HTTP/3 would go around the proxy.
        #expect(results.udp.prefix(4) == ["refused", "refused", "answer", "answer"])
        #expect(results.udp.dropFirst(4) == (results.plain.six == nil ? [] : ["refused", "answer"]))
        #expect(results.udpDown == "answer")
        #expect(results.down.answer.token == nil)
        #expect(results.down.answer.via == nil)
        #expect(results.bad == [2, 2, 2, 2, 2, 2])
        #expect(results.exit == 0)
        #expect(!results.outside.contains { $0.path == "/circle" || $0.host.contains("unknown") })
        #expect(!results.outside.contains { ["/unlisted", "/listed", "/nameless"].contains($0.path) })
        expectPlain(results.plain)
        expectSecure(results.tls)
        #expect(results.tls.circle == Results.Secure.Curl(exit: 35, seen: nil))
        guard let enclosed = results.enclosed else { return }
        expectPlain(enclosed.plain)
        expectSecure(enclosed.tls)
    }

    private func expectPlain(_ plain: Results.Plain) {
        let sent = Results.Seen(
            host: "198.51.100.9", path: "/v1?x=1", token: "Bearer outside-token", via: "1.1 heimdallr-proxy",
            body: "hello")
        #expect(plain.program.status == 200)
        #expect(plain.program.answer == sent)
        // The program's destination address is only a hint.
        #expect(plain.elsewhere.path == "/elsewhere")
        #expect(plain.elsewhere.token == "Bearer outside-token")
        #expect(plain.unknown.status == 403)
        if let six = plain.six { #expect(six.answer.token == "Bearer outside-token") }
    }

    private func expectSecure(_ tls: Results.Secure) {
        for (seen, path) in [
            (tls.python, "/python"), (tls.curl.seen, "/curl"), (tls.h2, "/h2"), (tls.bytes, "/bytes"),
            (tls.records, "/records"),
        ] {
            #expect(seen?.path == path)
            #expect(seen?.token == "Bearer outside-token")
        }
        #expect(tls.h2.via == "2 heimdallr-proxy")
        if let six = tls.six { #expect(six.seen?.token == "Bearer outside-token") }
        // Nothing of a tunnel's bytes is changed.
        for tunnel in [tls.tunnel, tls.elsewhere, tls.any, tls.ghost, tls.anySix].compactMap(\.self) {
            #expect(tunnel.exit == 0)
            #expect(tunnel.seen?.host.hasSuffix(".example.test") == true)
            #expect(tunnel.seen?.token == nil)
            #expect(tunnel.seen?.via == nil)
        }
        // 35: no TLS.
        for refused in [tls.unlisted, tls.listed, tls.nameless] {
            #expect(refused == Results.Secure.Curl(exit: 35, seen: nil))
        }
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `a redirection is made whole or not at all, whichever rule is refused`() async throws {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "bash", "\(Repository.root)/Tests/EndToEndTests/Fixtures/refused-rules",
                "\(Repository.root)/deploy/transparent/redirect", folder.path,
            ], within: .seconds(150))
        var cases: [String: [Int]] = [:]
        for line in output.split(separator: "\n") {
            let words = line.split(separator: " ")
            cases[String(words[0])] = words.dropFirst().compactMap { Int($0) }
        }
        let whole = try #require(cases["whole"])
        #expect(whole[0] == 0 && whole[1] > 0 && whole[1] == whole[2])
        let refused = cases.filter { $0.key.hasPrefix("refused-") }
        // A rule of each family, at the least.
        #expect(refused.count >= 10)
        for (name, outcome) in refused {
            // A refused check for an existing rule does no harm.
            #expect(outcome == whole || outcome[0] == 1 && outcome[1] == 0 && outcome[2] == 0, "\(name): \(outcome)")
        }
        #expect(refused.filter { $0.value[0] == 1 }.count >= 10)
        #expect(cases["missing"] == [1, 0, 0])
        #expect(cases["said"] == [0, 0, 1])
        #expect(cases["four"]?.first == 0 && cases["four"]?.last == 0)
        #expect(cases["half"]?.first == 1)
        #expect(cases["down"] == [0, 0, 0])
    }
}
