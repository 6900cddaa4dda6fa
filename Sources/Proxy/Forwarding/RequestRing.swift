import Configuration
import Reactor
import Reports
import WireText

/// The last requests of one loop, so that people see what happens.
///
/// A ring of fixed slots: a request costs a copy of its names, and no allocation. Texts are made when somebody looks.
/// Loop's thread only.
struct RequestRing {
    /// Bytes of one slot: method, host, path and the program's name, each cut at its limit.
    private static let slot = 256
    private static let limits = (method: 16, host: 64, path: 128, program: 48)

    struct Entry {
        let ended: LoopTime
        var nanoseconds: UInt64 = 0
        var status = 0
        var caller = Caller()
        var rule: UpstreamRule?
        var reason: String?
        var cause: String?
        var remedy: String?
        /// ID of the request; `nil`: `idNumber` stands for it.
        var id: [UInt8]?
        var idNumber: UInt64 = 0
        /// Ends of the texts in the slot.
        fileprivate var ends: (method: Int, host: Int, path: Int, program: Int) = (0, 0, 0, 0)

        init(ended: LoopTime) { self.ended = ended }
    }

    /// IDs for all requests of the loop that have none.
    var ids = RequestIDs()
    private var entries: [Entry] = []
    private var bytes: [UInt8] = []
    /// Number of requests so far.
    private(set) var count: UInt64 = 0

    mutating func add(
        _ entry: consuming Entry, method: Span<UInt8>, host: Span<UInt8>, path: Span<UInt8>, program: Span<UInt8>
    ) {
        if bytes.isEmpty { bytes = [UInt8](repeating: 0, count: RecentRequests.most * Self.slot) }
        let index = Int(count % UInt64(RecentRequests.most))
        let start = index * Self.slot
        entry.ends.method = copy(method, Self.limits.method, start)
        entry.ends.host = copy(host, Self.limits.host, entry.ends.method)
        entry.ends.path = copy(path, Self.limits.path, entry.ends.host)
        entry.ends.program = copy(program, Self.limits.program, entry.ends.path)
        if index < entries.count { entries[index] = entry } else { entries.append(entry) }
        count &+= 1
    }

    /// - Returns: the end of the copy.
    private mutating func copy(_ text: Span<UInt8>, _ limit: Int, _ start: Int) -> Int {
        let text = text.count > limit ? text.extracting(first: limit) : text
        bytes.replace(from: start, copying: text)
        return start + text.count
    }

    /// Adds the requests after the first `seen` to `report`, the oldest first.
    func add(to report: inout RecentRequests, after seen: UInt64, _ now: LoopTime) {
        let kept = max(min(seen, count), count - UInt64(entries.count))
        report.counts.append(count)
        report.missed += kept - min(seen, kept)
        let wall = WallTime.now
        for number in kept..<count {
            report.requests.append(request(Int(number % UInt64(RecentRequests.most)), now, wall))
        }
    }

    private func request(_ index: Int, _ now: LoopTime, _ wall: WallTime) -> RecentRequest {
        let entry = entries[index]
        func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        let ended = wall - now.since(entry.ended)
        var request = RecentRequest(
            id: String(decoding: entry.id ?? ids.text(of: entry.idNumber), as: UTF8.self),
            endedAt: Int64(ended.seconds) * 1000 + Int64(ended.nanoseconds / 1_000_000),
            duration: .nanoseconds(Int64(clamping: entry.nanoseconds)),
            method: text(index * Self.slot..<entry.ends.method), host: text(entry.ends.method..<entry.ends.host),
            path: text(entry.ends.host..<entry.ends.path), status: entry.status)
        let program = ForeignText.printable(text(entry.ends.path..<entry.ends.program))
        request.program = program.isEmpty ? nil : program
        request.caller = entry.caller.name
        request.upstream = entry.rule?.name
        request.rule = entry.rule?.index
        request.client = entry.rule?.settings.client
        request.reason = entry.reason
        request.cause = entry.cause
        request.remedy = entry.remedy
        return request
    }
}
