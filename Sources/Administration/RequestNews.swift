import Reports

/// The requests that the readers of `/events` have not seen yet.
struct RequestNews {
    /// Most requests of one call. The others are only counted.
    static let most = 50

    /// `nil` while nobody reads.
    private var seen: [UInt64]?

    /// Sends the requests since the last call. The first reader gets those from now on.
    mutating func send(_ model: AdminModel) async {
        guard model.feed.hasReaders, let requests = model.sources.requests else { return seen = nil }
        let report = await requests(seen ?? [])
        if seen != nil { for request in report.requests.suffix(Self.most) { model.feed.send(request) } }
        seen = report.counts
    }
}
