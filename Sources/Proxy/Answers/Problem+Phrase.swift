import Configuration
import HTTPMessage

// Reason phrases, and other texts of answers that name hosts. `Authority` has checked the bytes of the hosts.
extension Problem {
    static let maxPhrase = 80

    /// Returns the first of `phrases` that fits into a status line, else the last.
    static func phrase(_ phrases: [String]) -> String {
        phrases.first { $0.utf8.count <= maxPhrase && $0.utf8.allSatisfy { (0x20...0x7E).contains($0) } }
            ?? phrases.last ?? ""
    }

    static func phrase(of error: MessageError) -> String {
        switch error.status {
        case 414: "Shorten the target, or raise proxy.max_header_bytes"
        case 417: "Send no expectation but 100-continue"
        case 431: "Send fewer or shorter fields, or raise proxy.max_header_bytes"
        case 505: "Use HTTP/1.1 or HTTP/1.0"
        default:
            phrase([
                "Correct the request: \(error.detail.hasSuffix(".") ? String(error.detail.dropLast()) : error.detail)",
                "Correct the request: it breaks the grammar of HTTP/1.1",
            ])
        }
    }

    /// - Parameters:
    ///   - asked: authority that the request names.
    ///   - near: a similar upstream that the caller may use.
    static func unknownHost(_ asked: Authority, _ scheme: Scheme, near: HostPattern?) -> Problem {
        let destination = "\(asked.host):\(asked.port(for: scheme))"
        var problem = unknownHost
        problem.detail = "The configuration names no upstream for \(destination)"
        problem.detail += near.map { "; did you mean \($0)? Else add it" } ?? ". Add it"
        problem.detail += " under `upstreams`, or set `proxy.unmatched: forward`."
        if let near {
            problem.phrase = phrase([
                "No upstream for \(asked): did you mean \(near)?", "No upstream here: did you mean \(near)?",
                problem.phrase,
            ])
        } else {
            problem.phrase = phrase(["Add \(asked) to upstreams, or set proxy.unmatched: forward", problem.phrase])
        }
        return problem
    }

    private static let unknownHost = Problem(
        403, "http_request_denied", .noUpstream, "No upstream for this host",
        phrase: "Add the host to upstreams, or set proxy.unmatched: forward", "")

    /// Returns this problem for CONNECT to a host without an upstream. Its texts suggest `near`, if given.
    /// - Parameter near: a similar upstream that the caller may use; `nil` without one.
    func connecting(to authority: Authority, near: HostPattern?) -> Problem {
        guard let near else { return self }
        var problem = self
        problem.phrase = Self.phrase([
            "No upstream for \(authority): did you mean http://\(near)?",
            "No upstream here: did you mean http://\(near)?",
            phrase,
        ])
        problem.detail = "The configuration names no upstream for \(authority); did you mean http://\(near)? \(detail)"
        return problem
    }

    /// Returns this problem for CONNECT to a host whose http:// requests get a credential.
    func connecting(to authority: Authority) -> Problem {
        var problem = self
        problem.phrase = Self.phrase([
            "Use http://\(authority.byHTTP) instead of https, or set intercept: true",
            "Use http:// instead of https://, or set intercept: true on the upstream",
        ])
        return problem
    }
}

extension Authority {
    /// Authority of the http:// URL for this target of a CONNECT: without port 443.
    var byHTTP: Authority { Authority(host: host, port: port == 443 ? nil : port) }
}
