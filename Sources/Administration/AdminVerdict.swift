import HTTPServer

/// What an answer comes to, beside its text: for the exit codes of the command line.
public enum AdminVerdict {
    public static let field = "Heimdallr-Verdict"
    public static let bad = "bad"
}

extension ServerResponse {
    /// Something is degraded, or would be refused.
    func marked(bad: Bool) -> ServerResponse {
        guard bad else { return self }
        var response = self
        response.set(AdminVerdict.field, AdminVerdict.bad)
        return response
    }
}
