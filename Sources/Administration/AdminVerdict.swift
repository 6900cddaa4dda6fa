import HTTPServer

/// Verdict of an answer, for the exit code of the command line.
public enum AdminVerdict {
    public static let field = "Heimdallr-Verdict"
    public static let bad = "bad"
}

extension ServerResponse {
    /// - Parameter bad: something is degraded, or would be refused.
    func marked(bad: Bool) -> ServerResponse {
        var response = self
        if bad { response.set(AdminVerdict.field, AdminVerdict.bad) }
        return response
    }
}
