import HTTPServer

/// Field of an answer that decides the exit code of the command line.
public enum AdminVerdict {
    public static let field = "Heimdallr-Verdict"
    public static let bad = "bad"
}

extension ServerResponse {
    /// - Parameter bad: whether something is degraded, or `why` explains a request that would be refused.
    func marked(bad: Bool) -> ServerResponse {
        var response = self
        if bad { response.set(AdminVerdict.field, AdminVerdict.bad) }
        return response
    }
}
