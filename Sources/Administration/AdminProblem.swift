import HTTPServer
import WireText

/// Reason for an error answer of the administration. The raw value is the end of the problem's `type`, and the title of
/// a section in docs/errors.md. A published raw value keeps its meaning.
enum AdminProblem: String, Sendable, CaseIterable {
    case foreignHost = "admin-foreign-host"
    case foreignPage = "admin-foreign-page"
    case tokenNeeded = "admin-token-needed"
    case tooManyGuesses = "admin-too-many-guesses"
    case tokenUnreadable = "admin-token-unreadable"
    case staleForm = "admin-stale-form"
    case busy = "admin-busy"
    case nothingHere = "admin-nothing-here"
    case noClient = "admin-no-client"
    case noToken = "admin-no-token"
    case notExportable = "admin-not-exportable"
    case signInOver = "admin-sign-in-over"
    case signInFailed = "admin-sign-in-failed"

    static let field = "Heimdallr-Problem"

    /// URI of the problem (RFC 9457, section 3.1.1).
    var type: String { "urn:heimdallr-proxy:problem:\(rawValue)" }

    var status: Int { meaning.status }
    var title: String { meaning.title }

    private var meaning: (status: Int, title: String) {
        switch self {
        case .foreignHost: (403, "The administration does not answer to that host")
        case .foreignPage: (403, "Another site's page may not use the administration")
        case .tokenNeeded: (401, "The administration requires its token")
        case .tooManyGuesses: (429, "Too many wrong tokens")
        case .tokenUnreadable: (500, "admin.token can't be read")
        case .staleForm: (403, "The form is too old")
        case .busy: (503, "Too many requests at once")
        case .nothingHere: (404, "There is nothing here")
        case .noClient: (404, "No client of that name")
        case .noToken: (503, "No valid token")
        case .notExportable: (403, "No program may have this client's tokens")
        case .signInOver: (404, "The sign-in is over")
        case .signInFailed: (502, "The sign-in failed")
        }
    }
}

extension ServerResponse {
    /// An answer with a sentence for people. Its field `Heimdallr-Problem` names the problem for programs.
    static func problem(_ problem: AdminProblem, _ text: String) -> ServerResponse {
        ServerResponse.plain(problem.status, text).marked(problem)
    }

    func marked(_ problem: AdminProblem) -> ServerResponse {
        var response = self
        response.set(AdminProblem.field, problem.type)
        return response
    }

    /// Changes the body of a problem from plain text to application/problem+json (RFC 9457).
    mutating func explainForPrograms() {
        guard let type = value(AdminProblem.field), case .whole(let body) = body,
            let problem = AdminProblem.allCases.first(where: { $0.type == type }),
            value("Content-Type")?.hasPrefix("text/plain") == true
        else { return }
        let lines = String(decoding: body, as: UTF8.self).split(separator: "\n")
        let json = JSON.object([
            .init("type", .string(type)), .init("title", .string(problem.title)), .init("status", .number(status)),
            .init("detail", .string(lines.joined(separator: " "))),
        ])
        set("Content-Type", "application/problem+json")
        self.body = .whole(Array(json.document.utf8))
    }
}
