import WireText

@testable import Heimdallr

private let policy = TokenPolicy(
    defaultExpiresIn: .seconds(3600), defaultTokenType: "Bearer", treatAsBearer: [], requestedScope: [])
private let ours = Secret("s3cr3t+/&")

/// The body of an answer, read as a good one, as a refusal, as JSON and as text; the same bytes as `Retry-After`.
func check(_ input: [UInt8]) {
    checkToken(input)
    checkJSON(input)
    checkText(String(decoding: input, as: UTF8.self))
    if let body = try? JSONParser.parse(input), let text = body["error"]?.string { checkText(text) }

    let value = String(decoding: input.prefix(64), as: UTF8.self)
    let date = HeimdallrHTTPField(name: "Date", value: String(decoding: input.dropFirst(64).prefix(64), as: UTF8.self))
    for headers in [
        [HeimdallrHTTPField(name: "Retry-After", value: value)],
        [HeimdallrHTTPField(name: "Retry-After", value: value), date],
    ] {
        let wait = RetryAfter.duration(
            in: HeimdallrHTTPResponse(status: 429, headers: headers), wallClock: 1_800_000_000)
        require(wait.map { $0 >= .zero } ?? true, "nobody waits for less than nothing")
    }
}

private func checkToken(_ input: [UInt8]) {
    guard let response = try? OAuthAccessTokenDefaultParser().parse(input) else { return }
    let now = ContinuousClock.now
    guard
        let token = try? policy.token(
            from: response, askedAt: now, keeping: nil, Moment(now: now, wallClock: 1_800_000_000) { 0.5 })
    else { return }
    let bytes = token.value.revealedBytes
    require(!bytes.isEmpty && bytes.allSatisfy { (0x21...0x7E).contains($0) }, "a token is octets 0x21 to 0x7E")
    if let refresh = token.refreshToken {
        require(refresh.revealedBytes.allSatisfy { (0x20...0x7E).contains($0) }, "a refresh token is printable ASCII")
    }
    require(token.expiresAt >= now && token.expiresAt <= now + TokenPolicy.maxLifetime, "a life is bounded")
    require("\(token)\(response)".utf8.count < 64, "it prints as nothing of itself")
}

private func checkJSON(_ input: [UInt8]) {
    guard let value = try? JSONParser.parse(input) else { return }
    let text = Array(JSON(value).text(.compact, escaping: .page).utf8)
    require((try? JSONParser.parse(text)) == value, "written out, JSON reads the same")
    for end in cuts(text) where end < text.count {
        if case .number = value { break }
        require((try? JSONParser.parse(Array(text[..<end]))) == nil, "a cut text is no text")
    }
}

private func checkText(_ text: String) {
    for embedded in [text, text.prefix(8) + ours.revealed + text] {
        let shown = ServerText.sanitize(embedded, hiding: [ours])
        require(shown.unicodeScalars.count <= ServerText.maxCharacters + 1, "what is shown is short")
        require(!contains(Array(shown.utf8), ours.revealedBytes), "no secret is shown")
        require(
            !shown.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) || $0 == "\u{2028}" },
            "what is shown is printable")
    }
}

private func contains(_ bytes: [UInt8], _ needle: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: needle) }
}
