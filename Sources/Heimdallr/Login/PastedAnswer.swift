internal import WireText

// The answer of a login as people copy and paste it.
extension LoginAttempt {
    private static let quotes: Set<Character> = ["\"", "'", "`", "<", ">", "“", "”", "‘", "’", "«", "»"]

    /// Returns the address of the redirect that a pasted text stands for: in quotes or several lines, with text before
    /// it, without its scheme, its query alone, or the code alone.
    ///
    /// The caller checks the address with `check(_:)`. A code alone gets this login's `state`: instead of `state`, the
    /// PKCE challenge then ties the code to this login, so it needs PKCE.
    package func address(inPasted text: String) -> String {
        var text = String(String.UnicodeScalarView(text.unicodeScalars.filter { $0 != " " && !$0.isInvisible }))
            .replacing("&amp;", with: "&")[...]
        while let last = text.last, Self.quotes.contains(last) { text = text.dropLast() }
        while let first = text.first, Self.quotes.contains(first) { text = text.dropFirst() }
        let base = redirectURI.prefix { $0 != "?" }
        if let start = text.ranges(of: base).last?.lowerBound { return String(text[start...]) }
        if let mark = base.firstRange(of: "//"), let start = text.ranges(of: base[mark.upperBound...]).last?.lowerBound
        {
            return String(base[..<mark.upperBound] + text[start...])
        }
        guard !text.isEmpty, !text.contains("://") else { return String(text) }
        let fragment = expectation.method == .implicit ? "#" : nil
        let start = redirectURI + (fragment ?? (redirectURI.contains("?") ? "&" : "?"))
        let answer = text.first == "?" || text.first == "#" ? text.dropFirst() : text
        if answer.split(separator: "&").count > 1 { return start + answer }
        guard expectation.verifier != nil else { return String(text) }
        let code = answer.hasPrefix("code=") ? answer.dropFirst("code=".count) : answer
        let encoded = code.contains("%") ? String(code) : PercentEncoding.form.encode(String(code))
        return "\(start)code=\(encoded)&state=\(state)"
    }

    /// Checks that an address belongs to this login and can be read. Changes and sends nothing.
    /// - Throws: as `Heimdallr.finishLogin(_:redirectedTo:)`
    package func check(_ url: String) throws(LoginError) {
        _ = try AuthorizationResponse(url, redirectURI: redirectURI, state: state, expecting: expectation)
    }
}
