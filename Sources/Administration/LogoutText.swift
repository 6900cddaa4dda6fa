import Heimdallr

/// The answer of `logout`: the result, with advice if the logout is not complete.
enum LogoutText {
    static func text(_ report: LogoutReport, client: String) -> String {
        var lines: [String] = []
        let command = "heimdallr-proxy logout \(client) --local"
        switch report.result {
        case .nothingHeld: lines.append("There was no token of client \(client); nothing had to be revoked.")
        case .forgotten:
            lines.append("The tokens of client \(client) are forgotten here. The server was not asked to revoke them.")
        case .noEndpoint:
            lines.append(
                "Client \(client) has no revocation_endpoint, so its tokens can't be revoked. Nothing was changed.")
            lines.append("Set clients.\(client).revocation_endpoint, or forget the tokens here alone: \(command).")
        case .asked(let refreshToken, let accessToken):
            lines += [sentence("refresh token", refreshToken), sentence("access token", accessToken)].compactMap { $0 }
            lines.append(
                report.isForgotten
                    ? "The tokens of client \(client) are forgotten here."
                    : "Nothing was forgotten here. Try again, or forget the tokens here alone: \(command).")
        }
        if let fault = report.storeFault { lines.append("The record in the store could not be removed: \(fault).") }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func sentence(_ name: String, _ outcome: LogoutReport.TokenOutcome) -> String? {
        switch outcome {
        case .notHeld: nil
        case .revoked: "The server has revoked the \(name)."
        case .notAsked: "The server was not asked to revoke the \(name)."
        case .unsupported(let left):
            "The server does not revoke \(name)s"
                + (left.map { "; this one expires in \(StatusPage.words($0))." } ?? ".")
        case .failed(let fault): "The server did not revoke the \(name): \(fault)."
        }
    }
}
