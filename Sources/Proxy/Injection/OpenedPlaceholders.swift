/// Placeholders that one loop has opened before: their MAC costs nearly as much as the rest of a request. Loop's thread only.
struct OpenedPlaceholders {
    private struct Opened {
        let client: String
        let caller: String
        let end: Int64
    }

    private var known: [[UInt8]: Opened] = [:]
    private static let most = 512

    /// Checks a placeholder as `PlaceholderSeal.open` does.
    mutating func open(
        _ text: [UInt8], by seal: PlaceholderSeal, client: String, caller: String, now: Int64
    ) throws(PlaceholderSeal.Refusal) {
        if let opened = known[text], opened.client == client, opened.caller == caller, now <= opened.end { return }
        let end = try seal.open(text.span, client: client, caller: caller, now: now)
        if known.count == Self.most { known.removeAll(keepingCapacity: true) }
        known[text] = Opened(client: client, caller: caller, end: end)
    }
}
