public import HTTPMessage
import WireText

/// A next proxy's refusal, with its remedy. Holds no secrets.
public struct NextProxyRefusal: Sendable, Equatable {
    /// Host and port.
    public let proxy: String
    /// Status of the proxy's answer; `nil` without an answer.
    public let status: Int?
    /// Demand of the proxy and the key to change, a predicate without a full stop; `nil` if no cause is known. Printable.
    public let remedy: String?

    /// - Parameter lacksTicket: whether the proxy was not asked, because there is no token for it.
    init(_ hop: NextHop, status: Int?, challenges: [[UInt8]] = [], lacksTicket: Bool = false) {
        proxy = hop.address.map { "\($0.host):\($0.port)" } ?? ""
        self.status = status
        if lacksTicket {
            remedy = "gets no Kerberos ticket: check `keytab` and `principal` of `proxy`, and the KDC in krb5.conf"
        } else {
            remedy = status == 407 ? Self.remedy(hop, Challenge.readable(challenges).challenges.map(\.scheme)) : nil
        }
    }

    /// Returns the refusal in place of an origin's answer; `nil` if no proxy reads the requests to this origin.
    /// - Parameter challenges: values of Proxy-Authenticate.
    public init?(_ setting: NextProxy, to origin: Origin, status: Int, challenges: [[UInt8]]) {
        guard let hop = try? NextHop(setting, to: origin, tunnels: false), hop.needsAbsoluteForm else { return nil }
        self.init(hop, status: status, challenges: challenges)
        hop.noteRefusal(status)
    }

    /// The refusal as a text for logs.
    public var words: String {
        "\(proxy)\(status.map { " answered \($0)" } ?? "")\(remedy.map { ": it \($0)" } ?? "")"
    }

    private static func remedy(_ hop: NextHop, _ asked: [String]) -> String {
        let own = hop.login.method
        let known = NextProxyLogin.Method.allCases.filter { asked.contains($0.rawValue) }
        if !known.isEmpty, !known.contains(own) {
            let names = known.map(\.rawValue)
            return "takes \(names.joined(separator: ", ")), and `auth` of `proxy` is \(own.rawValue): write "
                + "{url: …, auth: \(names[0])}"
        }
        if own == .negotiate {
            return "refuses the Kerberos ticket: check `principal` and `keytab` of `proxy`, and the proxy's own key"
        }
        return hop.address?.user == nil
            ? "requires a name and password: write http://NAME:PASSWORD@HOST:PORT in `proxy`"
            : "refuses the name and password in `proxy`"
    }
}

/// The answers of a next proxy until its tunnel is open. Limits the proxy, which libcurl reads byte by byte and obeys
/// for ever.
struct NextProxyDialogue {
    /// Number of 407s that one connection may get: Digest needs one and one more for a stale nonce, NTLM two.
    static let maxRefusals = 2
    static let maxBodyBytes = 64 * 1024

    /// Value of Proxy-Authorization for the first request, if the proxy reads requests and takes a token.
    var token: [UInt8] = []
    /// Whether the request may be sent, so that answers are the origin's.
    var isOver = false
    private(set) var status: Int?
    /// Values of Proxy-Authenticate in the last answer.
    private(set) var challenges: [[UInt8]] = []
    /// Reason why the connection was ended; `nil` if it was not.
    private(set) var fault: String?
    private var refusals = 0
    private var steps = 0

    /// Counts a progress call, of which libcurl makes one for each byte, and returns whether libcurl may continue.
    mutating func takesStep(_ login: NextProxyLogin) -> Bool {
        guard !isOver else { return true }
        steps += 1
        return steps <= (login.answersChallenges ? Self.maxBodyBytes : 16 * 1024)
    }

    /// Reads a line of a head, and returns whether libcurl may continue.
    mutating func takes(_ line: Span<UInt8>) -> Bool {
        let text = String(decoding: [UInt8](copying: line.trimmed), as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
            challenges = []
            if status == 407 { refusals += 1 }
            if refusals > Self.maxRefusals { fault = "it asked for a login again and again" }
        } else if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            switch text[..<colon].lowercased() {
            case "proxy-authenticate": if challenges.count < 16 { challenges.append(Array(value.utf8)) }
            case "content-length":
                let size = Int(value) ?? 0
                if status == 407, size > Self.maxBodyBytes { fault = "its 407 has a body of \(size) bytes" }
            default: break
            }
        }
        return fault == nil
    }
}
